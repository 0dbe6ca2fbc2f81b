"""Output of commands: tables and lines for people, JSON for programs."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

import click

from forge.cli.options import UTC as UTC_OPTION
from forge.core.duration import format_duration
from forge.core.terminal_safe import terminal_safe, without_bidi

if TYPE_CHECKING:
    from rich.console import Console

    from forge.core.finding import Finding

# The sixteen ANSI colours, so that the terminal's theme decides how they look.
COLOURS = {
    "pending": "dim",
    "completed": "green",
    "running": "cyan",
    "claimed": "cyan",
    "retry": "yellow",
    "failed": "red",
    "dead_letter": "red",
    "cancelled": "magenta",
    "paused": "magenta",
    "alive": "green",
    "draining": "yellow",
    "drained": "yellow",
    "dead": "red",
    "ok": "green",
    "info": "cyan",
    "warning": "yellow",
    "problem": "red",
}
_FIGURE = re.compile(r"≈? ?[\d,.]+\+?( ?%| /min)?$|\d+/\d+$")
_FIGURE_OR_NONE = re.compile(rf"-$|{_FIGURE.pattern}")
# Width when stdout is not a terminal: grep and other programs need whole lines.
UNFOLDED = 1000
GAP = 2
# Minimum width of a column with text of several words.
MIN_TEXT_WIDTH = 12


def console(*, stderr: bool = False) -> "Console":
    """Return a console on stdout or stderr."""
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with 1; `| head` is not an error

    made = Screen(stderr=stderr, highlight=False, soft_wrap=False)
    return made if made.is_terminal else Screen(stderr=stderr, highlight=False, width=UNFOLDED)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Write a value as JSON."""
    is_ascii = not (sys.stdout.encoding or "ascii").lower().startswith("utf")
    written = json.dumps(value, default=_plain, indent=indent, ensure_ascii=is_ascii)
    # JSON escapes C0 control characters; escape DEL and C1 as well.
    escaped = re.sub("[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", written)
    click.echo(without_bidi(escaped))


def print_either(as_json: bool, value: Any, line: str) -> None:
    """Write a value for programs, or a line for people."""
    if as_json:
        print_json(value)
    else:
        say(line)


def print_findings(findings: "Iterable[Finding]", *, stderr: bool = False) -> None:
    """Write findings, each with what to do."""
    for finding in findings:
        severity = click.style(f"{finding.severity:<8}", fg=COLOURS[finding.severity])
        click.echo(f"{severity} {terminal_safe(f'{finding.code}: {finding.message}')}", err=stderr)
        if finding.action is not None:
            say(f"{'':<8} -> {finding.action}", err=stderr)


def print_table(columns: Sequence[str], lines: Iterable[Sequence[Any]]) -> None:
    """Write a table with coloured statuses."""
    from rich.table import Table
    from rich.text import Text

    rows = [[text(cell) for cell in line] for line in lines]
    table = Table(box=None, pad_edge=False, header_style="bold")
    needed = 0
    for place, name in enumerate(columns):
        cells = [row[place] for row in rows]
        # Wrap only cells with several words: ids are copied, and statuses are searched for.
        is_word = not any(" " in cell for cell in cells)
        needed += max(map(len, [name, *cells])) + GAP if is_word else MIN_TEXT_WIDTH + GAP
        # Figures of one unit are compared by their last digits.
        is_figures = any(map(_FIGURE.match, cells)) and all(map(_FIGURE_OR_NONE.match, cells))
        table.add_column(
            name, no_wrap=is_word, overflow="fold", justify="right" if is_figures else "left"
        )
    for row in rows:
        table.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in row))
    screen = console()
    screen.width = max(screen.width, needed)
    screen.print(table)


def say_more(nothing: str | None, cursor: object, stopped_early: bool) -> None:
    """Say that a list is empty, and how to continue one that goes on."""
    if nothing is not None:
        click.echo(f"{nothing} so far" if cursor is not None else nothing)
    if cursor is not None:
        why = "stopped after reading the newest rows; " if stopped_early else ""
        click.echo(f"{why}more: --cursor {cursor}")


def print_columns(columns: Mapping[str, Any]) -> None:
    """Write names and values, one per line."""
    width = max(map(len, columns))
    for name, value in columns.items():
        shown = text(value)
        is_status = name in ("status", "state") and shown in COLOURS
        click.echo(f"{name:<{width}}  {_coloured(shown) if is_status else shown}")


def _coloured(status: str) -> str:
    colour = COLOURS[status]
    return click.style(status, dim=True) if colour == "dim" else click.style(status, fg=colour)


def print_attempt(attempt: Mapping[str, Any]) -> None:
    """Write a failed attempt of a job or dead letter."""
    lease = f" (lease {attempt['lease']})" if "lease" in attempt else ""
    click.secho(f"\nattempt {attempt['attempt']}{lease}: {attempt['outcome']}", bold=True)
    click.echo(f"from {text(attempt['started_at'])} to {text(attempt['ended_at'])}")
    if attempt["error"]:
        say(f"{attempt['exception'] or 'error'}: {attempt['error']}")
    if attempt.get("trace"):
        say(attempt["trace"].rstrip())


def say(line: str, *, err: bool = False) -> None:
    """Write text that a job may have produced, with terminal escapes neutralised."""
    click.echo(terminal_safe(line), err=err)


def text(value: Any) -> str:
    """Format one value on one line."""
    return terminal_safe(_written(value))


def _written(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case str():
            return " ".join(value.split())
        case datetime():
            return _in_zone(value).strftime("%Y-%m-%d %H:%M:%S %Z")
        case timedelta():
            return format_duration(value)
        case dict():
            return json.dumps(value, default=_plain, ensure_ascii=False)
        case list() | tuple():
            return ", ".join(map(_written, value)) or "-"
    return str(value)


def _in_zone(value: datetime) -> datetime:
    try:
        return value.astimezone(_zone())
    except OverflowError:  # datetime.min or datetime.max
        return value


def _zone() -> tzinfo | None:
    """Return the time zone to show times in; None is the local one."""
    context = click.get_current_context(silent=True)
    return UTC if context is not None and context.meta.get(UTC_OPTION) else None


def shorten(value: str | None, width: int) -> str | None:
    """Truncate a text for a table cell."""
    line = None if value is None else " ".join(value.split())
    return line if line is None or len(line) <= width else line[: width - 1] + "…"


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return format_duration(value)
    return str(value)
