"""Schedule runs as a worker claims them: forge_schedules as a source of work."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import TypeAdapter

from forge.core.attempt_log import LogLine
from forge.core.errors import InvalidValue
from forge.core.events import AttemptEnded, AttemptStopped, Events
from forge.core.job import Job
from forge.core.outcome import Ack, Failure, Outcome, Raised, Released
from forge.core.schedules.record import ScheduleRecord
from forge.core.schedules.rule import Rule
from forge.core.schedules.run import NO_QUEUE, Conclusion, Run, as_ack, conclude
from forge.definitions.schedule import ScheduleDefinition
from forge.store import schedules
from forge.store.connection.link import Link
from forge.store.jobs import AttemptUpdate, Lane, LaneCursor
from forge.store.statement import Rows, Statement
from forge.store.workers import Registration
from forge.worker.attempts import Attempt
from forge.worker.batch_acker import BatchAcker, WriteKind, retry_write
from forge.worker.handlers.runtime import LoopRuntime
from forge.worker.handlers.schedule_context import ScheduleContext, concluded
from forge.worker.loops import WorkSignals

if TYPE_CHECKING:
    from forge.worker.held_work import HeldWork

# How the error of a run begins whose end the database refused.
UNSTORABLE = "unstorable: "


class ScheduleAcker(BatchAcker):
    """Writes the ends of schedule runs, each with its last progress."""

    batch_size = 500
    subject = "acks of schedule runs"

    def __init__(self, link: Link, held: "HeldWork", signals: WorkSignals, events: Events) -> None:
        conclusions = WriteKind("conclude", lambda e: schedules.conclude(e))
        super().__init__([link], held, signals, events, [conclusions])
        self._conclusions: list[Conclusion] = conclusions.waiting

    def add(self, end: Conclusion) -> None:
        self._conclusions.append(end)
        self._work.set()

    def ack(self, end: Conclusion, last_update: AttemptUpdate | None) -> None:
        """Write the end of a run, with its last progress."""
        if last_update is not None:
            end = end._replace(checkpoint=last_update.checkpoint, message=last_update.message)
        self.add(end)

    def _storable(self, end: Conclusion, reason: str) -> Conclusion | None:
        if (end.error or "").startswith(UNSTORABLE):
            return None
        return end._replace(checkpoint=None, message=None, error=f"{UNSTORABLE}{reason}"[:200])

    def _report(self, kind: WriteKind, entries: list[Any], refused: list[Any]) -> None:
        """Report nothing: change notifications are about jobs."""

    async def _written_before(self, link: Link, missed: list[Any], act: str) -> set[UUID]:
        found, _ = await retry_write(link, self._events, lambda: schedules.standing(missed))
        return {*found, *(end.id for end in missed if end.outcome is None)}


class ScheduleSource:
    """Claims, starts and settles the runs of schedules.

    What it is given to settle or release was claimed here, so that each `Job` is a `Run`.
    """

    def __init__(
        self,
        worker: Registration,
        definitions: Mapping[str, ScheduleDefinition[Any]],
        acker: ScheduleAcker,
        runtime: LoopRuntime,
        events: Events,
    ) -> None:
        self.acker = acker
        self._worker = worker
        self._definitions = definitions
        self._rules = {name: definition.rule for name, definition in definitions.items()}
        self._runtime = runtime
        self._events = events

    def owns(self, lane: Lane) -> bool:
        return lane.queue == NO_QUEUE

    def survey(self) -> Statement[list[Lane]]:
        return schedules.survey()

    def claim(
        self, cursors: list[LaneCursor], limit: int, *, start: bool, lanes: Sequence[Lane]
    ) -> Statement[list[Run]]:
        worker, incarnation = self._worker.id, self._worker.incarnation
        return schedules.claim(
            cursors,
            limit,
            worker=worker,
            incarnation=incarnation,
            rules=self._rules,
            lanes=lanes,
        )

    def claimed(self, jobs: Sequence[Job]) -> None:
        """Report nothing: change notifications are about jobs."""

    def attempt(self, job: Run, *, takes_slot: bool = True) -> Attempt | None:
        definition = self._definitions.get(job.type)
        if definition is None:
            return None
        runtime = self._runtime.in_threads if definition.handler_kind == "thread" else self._runtime
        context = ScheduleContext(job, runtime)
        context.definition = definition
        return Attempt(job, definition, context, self, takes_slot=takes_slot)

    def begin(self, job: Job) -> None:
        """Write nothing: a run is claimed as running."""

    def settle(
        self,
        job: Run,
        outcome: Outcome,
        last_update: AttemptUpdate | None,
        seconds: float,
        began: float | None,
    ) -> Ack:
        definition = self._definitions[job.type]
        try:
            conclusion = concluded(job, definition, outcome, seconds)
        except InvalidValue as error:
            # The row has a rule that cannot be parsed, or this machine lacks its time zone.
            message = f"its next run cannot be planned: {error}"
            failed = Raised(Failure("forge.InvalidValue", message, ""))
            conclusion = concluded(job, definition, failed, seconds, rule=Rule())
        self.acker.ack(conclusion, last_update)
        return as_ack(job, conclusion)

    def write_log(self, job: Job, lines: Sequence[LogLine]) -> None:
        """Write nothing: the log of a run is not stored."""

    def release(self, job: Run, *, has_begun: bool = False) -> None:
        rule, outcome = job.schedule.rule, Released(has_begun)
        self.acker.add(conclude(job, outcome, rule=rule, retry=None, seconds=0.0, chance=0.0))

    def report_end(self, ended: AttemptEnded) -> None:
        self._events.emit(ended)

    def report_stopped(self, job: Job, seconds: float) -> None:
        self._events.emit(AttemptStopped(job, seconds, None))

    def report_completed(self, job: Job, seconds: float, began: float | None) -> None:
        """Report nothing: change notifications are about jobs."""

    async def add_output(self, job: Job, output: str | None) -> None:
        """Write nothing: a run has no output."""

    def schedule_json(self, job: Run) -> str | None:
        return TypeAdapter(ScheduleRecord).dump_json(job.schedule).decode()

    def reconcile(self, held: Sequence[tuple[UUID, int]]) -> Statement[Rows]:
        return schedules.reconcile(self._worker.id, self._worker.incarnation, held)

    def give_back(self, job_id: UUID, lease: int) -> Statement[list[UUID]]:
        return schedules.release([(job_id, lease)])
