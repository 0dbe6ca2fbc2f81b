"""Progress, checkpoints and heartbeats of running attempts, gathered and written together."""

from collections.abc import Sequence
from uuid import UUID

from forge.core.errors import DatabaseUnavailable, ForgeError
from forge.jobs.context import JobContext
from forge.store import jobs
from forge.store.connection.link import Link
from forge.store.jobs import AttemptUpdate
from forge.worker.held_work import HeldWork
from forge.worker.job_reports import JobReports

# Seconds between two writes: a progress bar looks alive, and a tight loop costs nothing.
INTERVAL = 0.1


class ProgressWriter:
    """Keeps the newest update of each attempt until the next write."""

    def __init__(
        self,
        link: Link,
        reports: JobReports,
        held: HeldWork,
    ) -> None:
        self._link = link
        self._reports = reports
        self._held = held
        self._waiting: set[JobContext] = set()
        # Sent, perhaps without success: each stays until the database has it.
        self._unwritten: dict[JobContext, AttemptUpdate] = {}

    def add(self, context: JobContext) -> None:
        """Write the updates of an attempt before long."""
        self._waiting.add(context)

    def take(self, context: JobContext) -> AttemptUpdate | None:
        """Take out the updates of an attempt that are not known to be written."""
        self._waiting.discard(context)
        before, note = self._unwritten.pop(context, None), context.take_note()
        return note if before is None else before.followed_by(note)

    async def flush(self) -> None:
        """Write what is new."""
        waiting, self._waiting = self._waiting, set()
        for context in waiting:
            if (note := context.take_note()) is not None:
                before = self._unwritten.get(context)
                self._unwritten[context] = note if before is None else before.followed_by(note)
        if self._unwritten:
            try:
                await self.write(list(self._unwritten.values()))
            except DatabaseUnavailable:
                raise  # all of it goes with the next write
            except ForgeError:
                self._unwritten.clear()  # one that cannot be stored must not hold up the others
                raise
            self._unwritten.clear()

    async def write(self, notes: Sequence[AttemptUpdate]) -> set[UUID]:
        """Write these updates, and return the jobs whose were accepted."""
        accepted = set(await self._link.run(jobs.note(notes)))
        for note in notes:
            if note.id not in accepted:
                self._held.let_go(note.id, note.lease)
        self._reports.changed(list(accepted))
        return accepted
