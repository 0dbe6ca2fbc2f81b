"""COPY: many jobs of one type at the speed of the disk, and constant memory."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from forge.core.wish import Wish
from forge.store.statement import Statement, load

BLOCK = 500


class Copy(NamedTuple):
    """What is copied into forge_jobs: which columns, and their text, some hundred rows a block.

    Text, because the codecs that somebody else's connection has for jsonb or uuid cannot touch it.
    """

    columns: tuple[str, ...]
    blocks: Iterator[bytes]


def as_copy(wish: Wish, records: Iterable[tuple[str, str]]) -> Copy:
    """Write jobs as COPY takes them; a delay has to be made a time before."""
    shared = {
        name: value
        for name, value in wish._asdict().items()
        if value is not None and _DEFAULTS.get(name) != value
    }
    end = "".join(f"\t{_field(value)}" for value in shared.values()) + "\n"
    return Copy(("id", "input", *shared), _blocks(records, end))


def time_after(delay: timedelta) -> Statement[datetime]:
    return Statement(load("jobs/time_after"), (delay,), lambda found: found[0]["at"])


def may_not_copy() -> Statement[bool]:
    """Ask whether row security holds for whoever is connected: COPY is refused to them."""
    return Statement(load("jobs/may_not_copy"), (), lambda found: bool(found[0]["active"]))


# COPY takes values, not expressions: these are left to the table's own defaults.
_DEFAULTS = {
    "priority": 50,
    "max_attempts": 3,
    "queue": "default",
    "payload_version": "1.0",
}


def _blocks(records: Iterable[tuple[str, str]], end: str) -> Iterator[bytes]:
    # JSON as it is stored has no end of line or tab of its own, only backslashes.
    rows = iter(records)
    while block := [
        f"{id}\t{input.replace(_BACKSLASH, _ESCAPED)}{end}" for id, input in islice(rows, BLOCK)
    ]:
        yield "".join(block).encode()


_BACKSLASH, _ESCAPED = "\\", "\\\\"
_SPECIAL = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _field(value: Any) -> str:
    match value:
        case datetime():
            return value.isoformat()
        case timedelta():
            return f"{value // timedelta(microseconds=1)} microseconds"
        case list():
            return _array(value).translate(_SPECIAL)
    return str(value).translate(_SPECIAL)


def _array(texts: Sequence[str]) -> str:
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"
