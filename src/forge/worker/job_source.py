"""Jobs as a worker claims them: forge_jobs as a source of work."""

import random
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from forge.core.attempt_log import LogLine
from forge.core.events import AttemptEnded
from forge.core.job import Job
from forge.core.lifecycle import Status
from forge.core.outcome import (
    Ack,
    Completion,
    Failure,
    Outcome,
    Policy,
    Raised,
    Settlement,
    released,
    settle,
)
from forge.core.schedules.run import NO_QUEUE
from forge.definitions.job import JobDefinition
from forge.jobs.context import JobContext
from forge.store import attempt_logs, jobs
from forge.store.attempt_logs import AttemptLines
from forge.store.connection.link import Link
from forge.store.jobs import AttemptUpdate, Lane, LaneCursor
from forge.store.statement import Row, Rows, Statement
from forge.store.workers import Registration
from forge.worker.attempt_counts import AttemptCounts
from forge.worker.attempts import Attempt
from forge.worker.batch_acker import BatchAcker, WriteKind, retry_write
from forge.worker.handlers.runtime import LoopRuntime
from forge.worker.job_reports import JobReports
from forge.worker.loops import WorkSignals

if TYPE_CHECKING:
    from forge.worker.held_work import HeldWork


def policies_of(
    definitions: Mapping[str, JobDefinition[Any, Any]], crash_limit: int
) -> dict[str, Policy]:
    """Return how each job type handles failures."""
    return {
        name: Policy(definition.job_type.retry, definition.job_type.dead_letter, crash_limit)
        for name, definition in definitions.items()
    }


class JobAcker(BatchAcker):
    """Writes what began, how far it came and how it ended, in this order.

    Completions alone need no order: with two links the next ones are sent while the disk still
    writes the last.
    """

    def __init__(
        self,
        links: Sequence[Link],
        held: "HeldWork",
        signals: WorkSignals,
        policies: Mapping[str, Policy],
        reports: JobReports,
        counts: AttemptCounts,
    ) -> None:
        # A handler that completes in a transaction of its own writes its start there, too.
        starts = WriteKind("start", lambda e: jobs.start(e), is_end=False, checks_row=True)
        updates = WriteKind("note", lambda e: jobs.note(e), is_end=False)
        logs = WriteKind("log", lambda e: attempt_logs.add(e, time.monotonic()), is_end=False)
        completions = WriteKind("complete", lambda e: jobs.complete(e))
        settlements = WriteKind("settle", lambda e: jobs.settle(e))
        kinds = [starts, updates, logs, completions, settlements]
        super().__init__(links, held, signals, reports.events, kinds, independent=completions)
        self._policies = policies
        self._reports = reports
        self.counts = counts
        self._starts: list[Job] = starts.waiting
        self._updates: list[AttemptUpdate] = updates.waiting
        self._logs: list[AttemptLines] = logs.waiting
        self._completions: list[Completion] = completions.waiting
        self._settlements: list[Settlement] = settlements.waiting

    def start(self, job: Job) -> None:
        """Write that a job which waited in this worker has begun."""
        self._starts.append(job)
        self._work.set()

    def log(self, lines: AttemptLines) -> None:
        """Write the last lines of an attempt, whose end follows."""
        self._logs.append(lines)

    def ack(self, ack: Ack, last_update: AttemptUpdate | None) -> None:
        """Write the end of an attempt, with its last progress."""
        if last_update is not None:
            self._updates.append(last_update)
        if isinstance(ack, Completion):
            self._completions.append(ack)
        else:
            self._settlements.append(ack)
        self._work.set()

    def add(self, end: Ack) -> None:
        self.ack(end, None)

    def _report(self, kind: WriteKind, entries: list[Any], refused: list[Any]) -> None:
        if kind.is_end:
            self._reports.acked([entry.id for entry in entries])
        if kind.act == "complete":
            written = entries if not refused else [e for e in entries if e not in refused]
            if written:
                self.counts.completed(written)
        elif kind.act == "settle":
            self._reports.written(entries, refused)
            self.counts.settled(entries, refused)

    def _storable(self, end: Ack, reason: str) -> Ack | None:
        if isinstance(end, Settlement):
            return None if end.trace is None else _without_details(end, reason)
        if end.job is None:
            return None
        self.counts.ended(end.job, end.seconds)
        failure = Failure("forge.UnstorableOutput", f"the output cannot be stored: {reason}", "")
        return settle(end.job, Raised(failure), self._policies[end.job.type], random.random())

    async def _written_before(self, link: Link, missed: list[Any], act: str) -> set[UUID]:
        attempts = [(entry.id, entry.lease) for entry in missed]
        found, _ = await retry_write(link, self._events, lambda: jobs.standing(attempts))
        rows = {row["id"]: row for row in found}
        return {e.id for e in missed if e.id in rows and _is_written(e, act, rows[e.id])}


def _is_written(entry: Any, act: str, row: Row) -> bool:
    if isinstance(entry, Settlement) and entry.outcome is not None:
        # The record stays also when the job has long been claimed again.
        return bool(row["outcome"] == entry.outcome)
    return row["lease"] == entry.lease and row["status"] in _statuses_after(entry, act)


def _statuses_after(entry: Any, act: str) -> tuple[str, ...]:
    if isinstance(entry, Settlement):
        return (entry.status,)
    if act == "start":
        return Status.RUNNING, Status.COMPLETED
    return (Status.COMPLETED if act == "complete" else Status.RUNNING,)


def _without_details(settlement: Settlement, reason: str) -> Settlement:
    """Leave out what came from the handler."""
    return settlement._replace(
        exception=None, trace=None, place=None, message=f"unstorable: {reason}"[:500]
    )


class JobSource:
    """Claims, starts and settles jobs."""

    def __init__(
        self,
        worker: Registration,
        definitions: Mapping[str, JobDefinition[Any, Any]],
        policies: Mapping[str, Policy],
        acker: JobAcker,
        runtime: LoopRuntime,
        reports: JobReports,
    ) -> None:
        self.worker = worker
        self.acker = acker
        self._definitions = definitions
        self._policies = policies
        self._runtime = runtime
        self._reports = reports

    def owns(self, lane: Lane) -> bool:
        return lane.queue != NO_QUEUE

    def survey(self) -> Statement[list[Lane]]:
        return jobs.survey()

    def claim(
        self, cursors: list[LaneCursor], limit: int, *, start: bool, lanes: Sequence[Lane]
    ) -> Statement[list[Job]]:
        worker, incarnation = self.worker.id, self.worker.incarnation
        return jobs.claim(
            cursors, limit, start=start, worker=worker, incarnation=incarnation, lanes=lanes
        )

    def claimed(self, jobs: Sequence[Job]) -> None:
        self._reports.changed([job.id for job in jobs])

    def attempt(self, job: Job, *, takes_slot: bool = True) -> Attempt | None:
        definition = self._definitions.get(job.type)
        if definition is None:
            return None
        runtime = self._runtime.in_threads if definition.handler_kind == "thread" else self._runtime
        return Attempt(job, definition, JobContext(job, runtime), self, takes_slot=takes_slot)

    def begin(self, job: Job) -> None:
        self.acker.start(job)

    def settle(
        self,
        job: Job,
        outcome: Outcome,
        last_update: AttemptUpdate | None,
        seconds: float,
        began: float | None,
    ) -> Ack:
        policy = self._policies[job.type]
        ack = settle(job, outcome, policy, random.random(), seconds, began)
        if not isinstance(ack, Completion):
            self.acker.counts.ended(job, seconds)
        self.acker.ack(ack, last_update)
        return ack

    def write_log(self, job: Job, lines: Sequence[LogLine]) -> None:
        self.acker.log(AttemptLines(job.id, job.lease, lines))

    def release(self, job: Job, *, has_begun: bool = False) -> None:
        if has_begun:
            self.acker.counts.ended(job)
        self.acker.add(released(job.id, job.lease, has_begun=has_begun))

    def report_end(self, ended: AttemptEnded) -> None:
        if isinstance(ended.ack, Settlement) and ended.ack.status.is_final:
            # Nothing is reported as dead-lettered before it is.
            self._reports.emit_when_written(ended)
        else:
            self._reports.events.emit(ended)

    def report_stopped(self, job: Job, seconds: float) -> None:
        self._reports.stopped(job, seconds)

    def report_completed(self, job: Job, seconds: float, began: float | None) -> None:
        self._reports.acked([job.id])
        self.acker.counts.completed([Completion(job.id, job.lease, None, job, began, seconds)])

    async def add_output(self, job: Job, output: str | None) -> None:
        events = self._reports.events
        await retry_write(self._runtime, events, lambda: jobs.add_output(job.id, job.lease, output))

    def schedule_json(self, job: Job) -> str | None:
        return None

    def reconcile(self, held: Sequence[tuple[UUID, int]]) -> Statement[Rows]:
        return jobs.reconcile(self.worker.id, self.worker.incarnation, held)

    def give_back(self, job_id: UUID, lease: int) -> Statement[list[UUID]]:
        return jobs.settle([released(job_id, lease)])
