"""What the handler of a schedule is given: a job's context, its job being one run."""

import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

from forge.core.outcome import Returned
from forge.core.run import Run, write_next
from forge.core.schedule_record import ScheduleRecord
from forge.schedules.definition import ScheduleDefinition
from forge.store import schedules
from forge.store.jobs import Note
from forge.store.schedules import Sign
from forge.store.statement import Statement
from forge.worker.context import JobContext, Surroundings, is_accepted
from forge.worker.recurrence import concluded

if TYPE_CHECKING:
    from forge.store.database import Connection


class ScheduleContext(JobContext):
    """The run at hand: `job_id` is the schedule's id, `attempt` counts failures in a row.

    Progress is kept and written with the end of the run; so is the checkpoint, which the next run
    finds, unless a heartbeat writes it before.
    """

    __slots__ = ("_began", "_run", "definition")

    is_noted_as_it_goes = False

    # Set before the handler is called.
    definition: ScheduleDefinition[Any]

    def __init__(self, run: Run, around: Surroundings) -> None:
        super().__init__(run, around)
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

    def noting(self, note: Note) -> Statement[list[UUID]]:
        return schedules.note([Sign(note.id, note.lease, note.checkpoint)])

    def _write(self, output: Any) -> str | None:
        return write_next(output)

    async def _complete_on(self, conn: "Connection[Any]", output: str | None) -> bool:
        seconds = time.monotonic() - self._began
        done = concluded(self._run, self.definition, Returned(output), seconds)
        if self.note is not None:
            done = done._replace(checkpoint=self.note.checkpoint, message=self.note.message)
        return await is_accepted(conn, schedules.conclude([done]))
