"""Judges a run: what was acknowledged, what handlers did, what the database accepted."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from math import inf

from faultbench.history import Event, Kind

FINAL = frozenset({"completed", "failed", "dead_letter", "cancelled"})
ENDS = (Kind.KILLED, Kind.GONE)
# The server's clock and ours are the same one, read at different moments.
CLOCK_TOLERANCE = 0.005
# A shorter one is the time between two writes to the history.
SHORTEST_OVERLAP = 0.05


@dataclass(frozen=True, slots=True)
class Row:
    """A job as the database has it at the end."""

    job: str
    mark: str
    status: str
    lease: int


@dataclass(frozen=True, slots=True)
class Move:
    """A change of status or lease, recorded by a trigger of the bench."""

    job: str
    lease: int
    was: str
    becomes: str
    # The server's time of day on the monotonic clock of the history.
    monotonic: float


@dataclass(frozen=True)
class Verdict:
    """The marks of the jobs to which something happened, and the figures of the table."""

    # Acknowledged, and neither final at the end nor started before it was completed.
    lost: tuple[str, ...] = ()
    # Ran without ever having been dispatched.
    unexpected: tuple[str, ...] = ()
    # Left a final status.
    revived: tuple[str, ...] = ()
    # Completed under a lease whose handler had not ended by then.
    stale: tuple[str, ...] = ()
    # Two final moves of one job, or two jobs for one dispatch.
    accepted_twice: tuple[str, ...] = ()
    # Final, and not completed.
    unsuccessful: tuple[str, ...] = ()
    # Two attempts ran at the same time, both in processes that were alive and not paused.
    overlapping: tuple[str, ...] = ()
    # Started again although the attempt before had not failed by itself.
    duplicated: tuple[str, ...] = ()
    # Ended by a cancellation or an exception raised by the engine.
    stopped: tuple[str, ...] = ()
    jobs: int = 0
    overlap: float = 0.0

    def broken(self, *, allow: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
        """The findings that no run may have, except for those that this fault allows."""
        never = {
            "lost",
            "unexpected",
            "revived",
            "stale",
            "accepted_twice",
            "unsuccessful",
            "overlapping",
        }
        found = {name: getattr(self, name) for name in sorted(never - set(allow))}
        return {name: marks for name, marks in found.items() if marks}

    def __str__(self) -> str:
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return ", ".join(
            f"{len(value) if isinstance(value, tuple) else round(value, 2)} {name}"
            for name, value in named.items()
            if value
        )


def judge(events: Sequence[Event], rows: Iterable[Row], moves: Iterable[Move]) -> Verdict:
    """Compare the history with the rows and with what the database accepted."""
    cases = list(_cases(events, list(rows), list(moves)))

    def those(finding: str) -> tuple[str, ...]:
        return tuple(case.mark for case in cases if getattr(case, finding)())

    findings = {
        field.name: those(field.name)
        for field in fields(Verdict)
        if field.name not in ("jobs", "overlap")
    }
    return Verdict(
        **findings,
        jobs=sum(case.was_acknowledged for case in cases),
        overlap=sum(case.overlap for case in cases),
    )


class Case:
    """All that is known about one dispatch."""

    def __init__(
        self,
        mark: str,
        events: Sequence[Event],
        rows: Sequence[Row],
        moves: Sequence[Move],
        halts: "Halts",
    ) -> None:
        self.mark = mark
        self.was_dispatched = any(event.kind is Kind.DISPATCHING for event in events)
        self.was_acknowledged = any(event.kind is Kind.ACKNOWLEDGED for event in events)
        self._rows = rows
        self._moves = sorted(moves, key=lambda move: move.monotonic)
        self._starts = [event for event in events if event.kind is Kind.STARTED]
        self._ends = [event for event in events if event.kind is Kind.ENDED]
        self._halts = halts
        self.overlap = self._overlap()

    def lost(self) -> bool:
        if not self.was_acknowledged:
            return False
        if not self._rows or any(row.status not in FINAL for row in self._rows):
            return True
        return any(row.status == "completed" for row in self._rows) and not self._starts

    def unexpected(self) -> bool:
        return bool(self._starts) and not self.was_dispatched

    def revived(self) -> bool:
        return any(move.was in FINAL and move.becomes != move.was for move in self._moves)

    def stale(self) -> bool:
        ended_at = {(event.job, event.lease): event.monotonic for event in reversed(self._ends)}
        return any(
            ended_at.get((move.job, move.lease), inf) > move.monotonic + CLOCK_TOLERANCE
            for move in self._moves
            if move.becomes == "completed" and move.was != "completed"
        )

    def accepted_twice(self) -> bool:
        finals = [move for move in self._moves if move.becomes in FINAL and move.was not in FINAL]
        return len(finals) > 1 or len(self._rows) > 1

    def unsuccessful(self) -> bool:
        return any(row.status in FINAL and row.status != "completed" for row in self._rows)

    def duplicated(self) -> bool:
        failed = len([event for event in self._ends if event.detail.get("how") == "raised"])
        return len(self._starts) > 1 + failed

    def stopped(self) -> bool:
        return any(event.detail.get("how") == "stopped" for event in self._ends)

    def overlapping(self) -> bool:
        return self.overlap > SHORTEST_OVERLAP

    def _overlap(self) -> float:
        spans = [list(self._halts.spans(start, self._end_of(start))) for start in self._starts]
        return sum(
            max(0.0, min(one[1], other[1]) - max(one[0], other[0]))
            for ones, others in combinations(spans, 2)
            for one in ones
            for other in others
        )

    def _end_of(self, start: Event) -> float:
        same = (
            event.monotonic
            for event in self._ends
            if (event.job, event.lease, event.pid) == (start.job, start.lease, start.pid)
        )
        return min(same, default=inf)


class Halts:
    """When which process was killed or stood still."""

    def __init__(self, events: Iterable[Event]) -> None:
        events = list(events)
        self._by_pid: dict[int, list[Event]] = defaultdict(list)
        for event in events:
            if event.kind in (*ENDS, Kind.PAUSED, Kind.RESUMED):
                self._by_pid[event.pid].append(event)
        self._last = max((event.monotonic for event in events), default=0.0)

    def spans(self, start: Event, end: float) -> Iterator[tuple[float, float]]:
        """The times at which this attempt was really running, up to the end of the history."""
        since: float | None = start.monotonic
        end = min(end, self._last)
        for halt in self._of(start):
            if halt.monotonic >= end:
                break
            if halt.kind is Kind.RESUMED:
                since = max(start.monotonic, halt.monotonic) if since is None else since
                continue
            if since is not None and halt.monotonic > since:
                yield since, halt.monotonic
            if halt.kind in ENDS and halt.monotonic >= start.monotonic:
                return
            since = None if halt.kind is Kind.PAUSED else since
        if since is not None and end > since:
            yield since, end

    def _of(self, start: Event) -> list[Event]:
        """Of its own process, and of the worker whose child that is."""
        found = [*self._by_pid[start.pid], *self._by_pid[start.parent]]
        return sorted(found, key=lambda event: event.monotonic)


def _cases(events: Sequence[Event], rows: Sequence[Row], moves: Sequence[Move]) -> Iterator[Case]:
    # Of a row that is gone the events still tell.
    mark_of = {event.job: event.mark for event in events if event.job}
    mark_of |= {row.job: row.mark for row in rows}
    by_mark: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.mark:
            by_mark[event.mark].append(event)
    rows_of: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        rows_of[row.mark].append(row)
    moves_of: dict[str, list[Move]] = defaultdict(list)
    for move in moves:
        moves_of[mark_of.get(move.job, "")].append(move)
    halts = Halts(events)
    for mark in sorted({*by_mark, *rows_of} - {""}):
        yield Case(mark, by_mark[mark], rows_of[mark], moves_of[mark], halts)
