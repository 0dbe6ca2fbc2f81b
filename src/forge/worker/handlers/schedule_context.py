"""The context of a schedule's handler: a job's context, its job being one run."""

import random
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

from forge.core.outcome import Outcome, Returned
from forge.core.schedules.record import ScheduleRecord
from forge.core.schedules.rule import Rule
from forge.core.schedules.run import Conclusion, Run, conclude, rule_of, write_next
from forge.definitions.schedule import ScheduleDefinition
from forge.jobs.context import HandlerRuntime, JobContext, is_accepted
from forge.store import schedules
from forge.store.jobs import AttemptUpdate
from forge.store.schedules import RunUpdate
from forge.store.statement import Statement

if TYPE_CHECKING:
    from forge.store.connection.database import Connection


class ScheduleContext(JobContext):
    """The current run: `job_id` is the schedule's id, `attempt` counts failures in a row.

    Progress is kept and written with the end of the run; so is the checkpoint, which the next run
    finds, unless a heartbeat writes it before. Its log is emitted as log records, and not stored.
    """

    __slots__ = ("_began", "_run", "definition")

    is_noted_as_it_goes = False
    keeps_log = False

    # Set before the handler is called.
    definition: ScheduleDefinition[Any]

    def __init__(self, run: Run, runtime: HandlerRuntime) -> None:
        super().__init__(run, runtime)
        self._run = run
        self._began = time.monotonic()

    @property
    def schedule(self) -> ScheduleRecord:
        """The schedule as it was when this run began."""
        return self._run.schedule

    @property
    def is_last_attempt(self) -> bool:
        """Never: a schedule is tried again."""
        return False

    def noting(self, note: AttemptUpdate) -> Statement[list[UUID]]:
        return schedules.note([RunUpdate(note.id, note.lease, note.checkpoint)])

    def _write(self, output: Any) -> str | None:
        return write_next(output)

    async def _complete_on(self, conn: "Connection[Any]", output: str | None) -> bool:
        seconds = time.monotonic() - self._began
        done = concluded(self._run, self.definition, Returned(output), seconds)
        if self.note is not None:
            done = done._replace(checkpoint=self.note.checkpoint, message=self.note.message)
        return await is_accepted(conn, schedules.conclude([done]))


def concluded(
    run: Run,
    definition: ScheduleDefinition[Any],
    outcome: Outcome,
    seconds: float,
    rule: Rule | None = None,
) -> Conclusion:
    """Decide what becomes of a schedule of this type, by its own rule or by the one given."""
    return conclude(
        run,
        outcome,
        rule=rule_of(run.schedule, definition.rule) if rule is None else rule,
        retry=definition.job_type.retry,
        seconds=seconds,
        chance=random.random(),
    )
