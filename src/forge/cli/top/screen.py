"""Draws a snapshot for a terminal of a given size."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from forge.cli.figures import duration, milliseconds, per_minute, percent, sparkline
from forge.cli.output import COLOURS, text
from forge.cli.top.snapshot import Snapshot, TypeLine
from forge.cli.top.view import KEYS, ORDERS, View
from forge.core.finding import Finding
from forge.core.job_counts import BoundedCount
from forge.core.lifecycle import Status
from forge.core.overview import Overview

MAX_FINDINGS = 5
# The names of types have this width; columns that say less are left out for it.
NAME_WIDTH = 16
GAP = 2
# A screen that is lower shows the types alone.
LOW = 16
FAILING, BAD = COLOURS["retry"], COLOURS["failed"]
# The percentage of failures from which they are red.
BAD_PERCENT = 5.0


def draw(
    shown: Snapshot, view: View, width: int, height: int, error: str | None = None
) -> RenderableType:
    """Return the lines of a screen: the answer first, then figures, types and findings."""
    head = [_title(shown, view, width), _answer(shown.findings)]
    if error is not None:
        head.append(
            Text(text(f"cannot read: {error}"), style=BAD, no_wrap=True, overflow="ellipsis")
        )
    if height > LOW:
        head += [Text(), *_trends(shown, width), *_state(shown.overview)]
    elif view.has_help:
        return Group(*head, *_keys())
    foot = _keys() if view.has_help else _findings(shown.findings, height)
    if view.is_typing:
        foot = [Text(f"/{view.filter}█"), *foot]
    room = max(1, height - len(head) - len(foot) - 3)
    return Group(*head, Text(), *_types(shown, view, width, room), *foot)


def _title(shown: Snapshot, view: View, width: int) -> Text:
    title = Text.assemble(
        ("forge top", "bold"), f"  {text(shown.at)}  last {shown.last}", no_wrap=True
    )
    if view.is_held:
        title.append("  held", COLOURS["paused"])
    keys = "q quit  ? keys"
    if (gap := width - len(title) - len(keys)) > 1:
        title.append(" " * gap + keys, "dim")
    return title


def _answer(findings: Sequence[Finding]) -> Text:
    """Say in one line whether everything is all right."""
    parts = []
    for severity, colour in (("problem", BAD), ("warning", FAILING)):
        count = sum(finding.severity == severity for finding in findings)
        if count:
            parts.append((f"{count} {severity}{'s' * (count > 1)}", f"bold {colour}"))
    if not parts:
        return Text("no problems found", style=COLOURS["completed"])
    return Text(", ").join(Text(*part) for part in parts)


def _trends(shown: Snapshot, width: int) -> list[Text]:
    points = shown.statistics.series
    ended = [point.completed + point.failed for point in points]
    failed = [point.failed for point in points]
    waits = [point.wait_ms.p95 for point in points]
    runs = [point.run_ms.p95 for point in points]
    total = sum(ended)
    rate = sum(line.per_minute for line in shown.types)
    figures: list[tuple[str, str, Sequence[float | None]]] = [
        ("jobs", per_minute(rate), ended),
        ("wait p95", f"up to {milliseconds(_top(waits))}", waits),
        ("run p95", f"up to {milliseconds(_top(runs))}", runs),
        ("failed", percent(100 * sum(failed) / total if total else None), failed),
    ]
    bars = max(10, min(60, width - 30))
    return [
        Text(f"{name:<9} {figure:<17} {sparkline(values, bars)}".rstrip())
        for name, figure, values in figures
    ]


def _state(overview: Overview) -> list[Text]:
    jobs, slots, workers = overview.jobs, overview.slots, overview.workers
    waiting = Text(f"waiting {_count(jobs, Status.PENDING, Status.RETRY)}")
    if (oldest := overview.oldest_ready) is not None:
        age = duration(oldest.waiting_seconds)
        waiting.append(text(f", the oldest for {age} ({oldest.job_type})"))
    running = Text(f"running {_count(jobs, Status.RUNNING, Status.CLAIMED)}   slots ")
    is_full = slots.total > 0 and slots.in_use >= slots.total
    running.append(f"{slots.in_use:,} of {slots.total:,}", FAILING if is_full else "")
    running.append("   workers ")
    states = ("alive", "drained", "draining", "dead")
    found = [(f"{count} {state}", state) for state in states if (count := getattr(workers, state))]
    running.append_text(
        Text(", ").join(Text(words, style=COLOURS[state]) for words, state in found)
        if found
        else Text("none", style=BAD)
    )
    letters, failing = overview.dead_letters_waiting, overview.schedules_failing.count
    last = Text()
    last.append(f"dead letters {letters:,}", COLOURS["dead_letter"] if letters else "")
    last.append(f"   schedules failing {failing:,}", FAILING if failing else "")
    last.append(f"   pauses {len(overview.pauses)}", COLOURS["paused"] if overview.pauses else "")
    return [waiting, running, last]


def _types(shown: Snapshot, view: View, width: int, room: int) -> list[RenderableType]:
    lines = view.lines(shown.types)
    if not lines:
        if view.filter:
            return [Text(f"no type contains {view.filter!r}; Esc clears the filter")]
        return [Text(f"no jobs in the last {shown.last}; workers write statistics every 10 s")]
    table = Table(
        box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold", expand=True
    )
    table.add_column(_heading("type", view), no_wrap=True, overflow="ellipsis", ratio=1)
    cells = [dict(zip(_COLUMNS, _cells(line), strict=True)) for line in lines[:room]]
    chosen = _columns(cells, view, width)
    for name in chosen:
        table.add_column(_heading(name, view), justify="right", no_wrap=True)
    for line, row in zip(lines, cells, strict=False):
        table.add_row(text(line.job_type), *(row[name] for name in chosen), style=_style(line))
    if len(lines) <= room:
        return [table]
    return [table, Text(f"… {len(lines) - room} more; / filters, r n w u f t sort", style="dim")]


_COLUMNS = (
    *("rate", "waiting", "oldest", "running", "wait p50", "wait p95", "run p50", "run p95"),
    *("failed", "failed %", "retried"),
)
_LEFT_OUT_FIRST = (
    *("failed", "oldest", "retried", "wait p50", "run p50", "running", "wait p95", "run p95"),
    *("waiting", "failed %", "rate"),
)


def _columns(cells: Sequence[Mapping[str, str]], view: View, width: int) -> list[str]:
    """Return the columns that fit beside the names of the types."""
    widths = {
        name: GAP + max(len(_heading(name, view)), *(len(row[name]) for row in cells))
        for name in _COLUMNS
    }
    left_out: set[str] = set()
    for name in _LEFT_OUT_FIRST:
        if NAME_WIDTH + sum(widths.values()) - sum(widths[one] for one in left_out) <= width:
            break
        if ORDERS[view.sort].label != name:
            left_out.add(name)
    return [name for name in _COLUMNS if name not in left_out]


def _heading(name: str, view: View) -> Text:
    is_sorted = ORDERS[view.sort].label == name
    return Text(f"{name}▾" if is_sorted else name, style="underline" if is_sorted else "")


def _cells(line: TypeLine) -> tuple[str, ...]:
    more = "" if line.is_exact else "+"
    return (
        per_minute(line.per_minute),
        f"{line.waiting:,}{more}",
        "-" if line.oldest_seconds is None else duration(line.oldest_seconds),
        f"{line.running:,}",
        *map(milliseconds, (line.wait_ms.p50, line.wait_ms.p95, line.run_ms.p50, line.run_ms.p95)),
        f"{line.failed:,}",
        percent(line.failed_percent),
        f"{line.retried:,}",
    )


def _style(line: TypeLine) -> str:
    if not line.failed:
        return ""
    return BAD if (line.failed_percent or 0) >= BAD_PERCENT else FAILING


def _findings(findings: Sequence[Finding], height: int) -> list[RenderableType]:
    found = [finding for finding in findings if finding.severity in ("problem", "warning")]
    if not found or height <= LOW:
        return []
    most = MAX_FINDINGS if height > 2 * LOW else 2
    lines: list[RenderableType] = [Text()]
    for finding in found[:most]:
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{finding.severity:<8}", COLOURS[finding.severity])
        line.append(text(f" {finding.code}: {finding.message}"))
        lines.append(line)
    if len(found) > most:
        lines.append(
            Text(f"… {len(found) - most} more; `forge doctor` says what to do", style="dim")
        )
    return lines


def _keys() -> list[RenderableType]:
    return [Text(), *(Text(f"{key:<12} {meaning}", no_wrap=True) for key, meaning in KEYS)]


def _count(jobs: Mapping[Status, BoundedCount], *statuses: Status) -> str:
    counts = [jobs[status] for status in statuses if status in jobs]
    total = sum(count.count for count in counts)
    precisions = {count.precision for count in counts}
    if "estimate" in precisions:
        return f"≈ {total:,}"
    return f"{total:,}+" if "at_least" in precisions else f"{total:,}"


def _top(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
