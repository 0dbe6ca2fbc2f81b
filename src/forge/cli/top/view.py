"""What the user of `forge top` has chosen: pure, from one key to the next."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from forge.cli.top.snapshot import TypeLine

RANGES = ("5m", "15m", "1h", "6h", "24h")
ESCAPE, ENTER, ERASE = "\x1b", ("\r", "\n"), ("\x7f", "\b")
MAX_FILTER = 60


class Order(NamedTuple):
    """A way to sort the types."""

    key: str
    label: str
    # The greatest first; None last.
    value: Callable[[TypeLine], Any]


ORDERS: Mapping[str, Order] = {
    "rate": Order("r", "rate", lambda line: line.per_minute),
    "waiting": Order("n", "waiting", lambda line: (line.waiting, line.oldest_seconds or 0)),
    "wait": Order("w", "wait p95", lambda line: line.wait_ms.p95),
    "run": Order("u", "run p95", lambda line: line.run_ms.p95),
    "failed": Order("f", "failed %", lambda line: line.failed_percent),
    "type": Order("t", "type", lambda line: line.job_type),
}
BY_KEY = {order.key: name for name, order in ORDERS.items()}
KEYS = (
    ("r n w u f t", "sort by rate, waiting, wait p95, run p95, failed %, type"),
    ("/", "show only types that contain a text; Enter keeps it, Esc clears it"),
    ("+ -", "look further back, or less far"),
    ("space", "hold the figures still"),
    ("?", "show or hide the keys"),
    ("q", "quit"),
)


@dataclass(frozen=True, slots=True)
class View:
    """The order, the filter and the window."""

    sort: str = "rate"
    filter: str = ""
    last: str = "15m"
    is_typing: bool = False
    is_held: bool = False
    has_help: bool = False
    is_over: bool = False

    def lines(self, lines: Sequence[TypeLine]) -> list[TypeLine]:
        """Return the types that match the filter, in order."""
        wanted = self.filter.casefold()
        found = [line for line in lines if wanted in line.job_type.casefold()]
        if self.sort == "type":
            return sorted(found, key=lambda line: line.job_type)
        value = ORDERS[self.sort].value
        measured = [line for line in found if value(line) is not None]
        rest = [line for line in found if value(line) is None]
        return sorted(measured, key=value, reverse=True) + rest


def pressed(view: View, key: str) -> View:
    """Return the view after a key."""
    if view.is_typing:
        return _typed(view, key)
    match key:
        case "q" | "Q":
            return replace(view, is_over=True)
        case "/":
            return replace(view, is_typing=True, filter="")
        case " ":
            return replace(view, is_held=not view.is_held)
        case "?" | "h":
            return replace(view, has_help=not view.has_help)
        case "+" | "=" | "-":
            return replace(view, last=_range(view.last, -1 if key == "-" else 1))
        case "\x1b":
            return replace(view, filter="", has_help=False)
    return replace(view, sort=BY_KEY[key]) if key in BY_KEY else view


def _typed(view: View, key: str) -> View:
    if key in ENTER:
        return replace(view, is_typing=False)
    if key == ESCAPE:
        return replace(view, is_typing=False, filter="")
    if key in ERASE:
        return replace(view, filter=view.filter[:-1])
    if key.isprintable():
        return replace(view, filter=(view.filter + key)[:MAX_FILTER])
    return view


def _range(last: str, step: int) -> str:
    if last not in RANGES:
        return RANGES[1]
    return RANGES[min(max(RANGES.index(last) + step, 0), len(RANGES) - 1)]
