"""Check a history against the final rows, in the manner of Jepsen's total-queue checker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations, pairwise
from math import inf

from tests.faults.kit.history import Event, Kind

FINAL = frozenset({"completed", "failed", "dead_letter", "cancelled"})
GIVEN_BACK = frozenset({"pending", "retry"})


@dataclass(frozen=True, slots=True)
class Row:
    """A job as the database holds it at the end of the run."""

    job: str
    status: str
    lease: int


@dataclass(frozen=True, slots=True)
class Halt:
    """The moment at which a process was killed or stopped from outside."""

    pid: int
    monotonic: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The findings, with the jobs concerned; `faults` holds those that are never allowed."""

    # Acknowledged, but not final at the end, or completed without having run.
    lost: tuple[str, ...]
    # Ran, although it was never dispatched.
    unexpected: tuple[str, ...]
    # Claimed, started or accepted again after a final outcome was accepted.
    revived: tuple[str, ...]
    # An outcome was accepted from an attempt that a later lease had already replaced.
    stale: tuple[str, ...]
    # The same attempt accepted twice, or two final outcomes for one job.
    accepted_twice: tuple[str, ...]
    # The row differs from the last accepted outcome.
    contradicted: tuple[str, ...]
    # Two attempts ran at the same time, both in live processes.
    overlapping: tuple[str, ...]
    # Started again although the previous attempt was neither released nor halted.
    unexplained: tuple[str, ...]
    # Started more than once, whatever the reason.
    duplicated: tuple[str, ...]
    # Ran although the dispatch was never acknowledged.
    recovered: tuple[str, ...]

    @property
    def faults(self) -> dict[str, tuple[str, ...]]:
        return {
            name: jobs
            for name, jobs in self._named().items()
            if jobs and name not in ("duplicated", "recovered")
        }

    def __str__(self) -> str:
        return ", ".join(f"{len(jobs)} {name}" for name, jobs in self._named().items())

    def _named(self) -> dict[str, tuple[str, ...]]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def check(events: Iterable[Event], rows: Iterable[Row], halts: Sequence[Halt] = ()) -> Verdict:
    """Find jobs that were lost, ran twice, were revived or were completed by a stale attempt."""
    events = list(events)
    silences = [event for event in events if event.kind == Kind.HEARD_AGAIN]
    of_jobs = [event for event in events if event.kind != Kind.HEARD_AGAIN]
    tales = _stories(of_jobs, rows, halts, silences)

    def those(judge: str) -> tuple[str, ...]:
        return tuple(job for job, tale in tales.items() if getattr(tale, judge)())

    return Verdict(**{field.name: those(field.name) for field in fields(Verdict)})


class JobStory:
    """All events of one job, with its final row."""

    def __init__(
        self,
        events: Sequence[Event],
        row: Row | None,
        halts: Sequence[Halt],
        silences: Sequence[Event],
    ) -> None:
        of_kind: Mapping[Kind, list[Event]] = defaultdict(list)
        for event in events:
            of_kind[event.kind].append(event)
        self._row = row
        self._tried = bool(of_kind[Kind.DISPATCHING] or of_kind[Kind.DISPATCHED])
        self._acknowledged = bool(of_kind[Kind.DISPATCHED])
        self._starts = of_kind[Kind.STARTED]
        self._claims = of_kind[Kind.CLAIMED]
        self._accepts = of_kind[Kind.ACCEPTED]
        self._finished_at = {event.lease: event.monotonic for event in of_kind[Kind.FINISHED]}
        self._claimed_at = {event.lease: event.monotonic for event in self._claims}
        self._halts = halts
        self._silences = silences

    def lost(self) -> bool:
        if not self._acknowledged:
            return False
        if self._row is None or self._row.status not in FINAL:
            return True
        return self._row.status == "completed" and not self._starts

    def unexpected(self) -> bool:
        return bool(self._starts) and not self._tried

    def recovered(self) -> bool:
        return bool(self._starts) and self._tried and not self._acknowledged

    def duplicated(self) -> bool:
        return len(self._starts) > 1

    def revived(self) -> bool:
        # By lease, not by time: a worker may be paused between its ack and recording it.
        finals = [event.lease for event in self._accepts if event.status in FINAL]
        if not finals:
            return False
        later = (*self._claims, *self._starts, *self._accepts)
        if any(event.lease > min(finals) for event in later):
            return True
        return self._row is not None and self._row.status not in FINAL

    def stale(self) -> bool:
        return any(self._replaced_before_it_finished(event) for event in self._accepts)

    def accepted_twice(self) -> bool:
        leases = [event.lease for event in self._accepts]
        finals = [event for event in self._accepts if event.status in FINAL]
        return len(leases) > len(set(leases)) or len(finals) > 1

    def contradicted(self) -> bool:
        finals = {(event.lease, event.status) for event in self._accepts if event.status in FINAL}
        if self._row is None or not finals:
            return False
        return (self._row.lease, self._row.status) not in finals

    def overlapping(self) -> bool:
        spans = [(start.monotonic, self._end_of(start)) for start in self._starts]
        return any(
            first[0] < second[1] and second[0] < first[1]
            for first, second in combinations(spans, 2)
        )

    def unexplained(self) -> bool:
        # By lease: a worker that was paused during its rescue may start a job that is finished.
        starts = sorted(self._starts, key=lambda start: start.lease)
        return any(
            not self._given_back(before)
            and self._halted_at(before) > after.monotonic
            and not self._silent_since_a_halt(before, after)
            for before, after in pairwise(starts)
        )

    def _replaced_before_it_finished(self, accepted: Event) -> bool:
        finished_at = self._finished_at.get(accepted.lease, -inf)
        return any(
            later.lease > accepted.lease and later.monotonic < finished_at
            for later in (*self._claims, *self._starts)
        )

    def _end_of(self, start: Event) -> float:
        return min(self._finished_at.get(start.lease, inf), self._halted_at(start))

    def _halted_at(self, start: Event) -> float:
        halts = [halt.monotonic for halt in self._halts if halt.pid == start.pid]
        earlier = [moment for moment in halts if moment < start.monotonic]
        if earlier and self._replaced_before_it_started(start):
            return max(earlier)
        # A child may start a job after its worker was halted, before the claim was recorded.
        since = min(start.monotonic, self._claimed_at.get(start.lease, inf))
        return min((moment for moment in halts if moment >= since), default=inf)

    def _silent_since_a_halt(self, start: Event, next_start: Event) -> bool:
        # Its worker was halted and ran a claimed job before its next heartbeat, and no other
        # worker started the job before this one counted as dead.
        claimed_at = min(start.monotonic, self._claimed_at.get(start.lease, inf))
        return any(
            silence.pid == halt.pid == start.pid
            and silence.since <= halt.monotonic <= claimed_at <= silence.monotonic
            and silence.dead_at <= next_start.monotonic
            for silence in self._silences
            for halt in self._halts
        )

    def _replaced_before_it_started(self, start: Event) -> bool:
        return any(
            later.lease > start.lease and later.monotonic < start.monotonic
            for later in (*self._claims, *self._starts)
        )

    def _given_back(self, start: Event) -> bool:
        return any(
            event.lease == start.lease and event.status in GIVEN_BACK for event in self._accepts
        )


def _stories(
    events: Iterable[Event], rows: Iterable[Row], halts: Sequence[Halt], silences: Sequence[Event]
) -> dict[str, JobStory]:
    by_job: dict[str, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: event.monotonic):
        by_job[event.job].append(event)
    row_of = {row.job: row for row in rows}
    return {job: JobStory(steps, row_of.get(job), halts, silences) for job, steps in by_job.items()}
