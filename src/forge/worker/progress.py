"""Progress, checkpoints and log lines of running attempts, gathered and written together."""

import time
from collections.abc import Sequence
from uuid import UUID

from forge.core.attempt_log import LogLine
from forge.core.errors import DatabaseUnavailable, ForgeError
from forge.jobs.context import JobContext
from forge.store import attempt_logs, jobs
from forge.store.attempt_logs import AttemptLines
from forge.store.connection.link import Link
from forge.store.jobs import AttemptUpdate
from forge.worker.held_work import HeldWork
from forge.worker.job_reports import JobReports

# Seconds between two writes: a progress bar looks alive, and a tight loop costs nothing.
INTERVAL = 0.1


class ProgressWriter:
    """Keeps the newest update and the lines of each attempt until the next write."""

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
        # By kind and place, so that a newer line replaces an older one here, too.
        self._unwritten_lines: dict[JobContext, dict[tuple[str, int], LogLine]] = {}

    def add(self, context: JobContext) -> None:
        """Write the updates of an attempt before long."""
        self._waiting.add(context)

    def take(self, context: JobContext) -> AttemptUpdate | None:
        """Take out the updates of an attempt that are not known to be written."""
        self._waiting.discard(context)
        before, note = self._unwritten.pop(context, None), context.take_note()
        return note if before is None else before.followed_by(note)

    def take_lines(self, context: JobContext) -> list[LogLine]:
        """Take out the lines of an attempt that has ended and are not known to be written."""
        lines = self._unwritten_lines.pop(context, {})
        return list(_merged(lines, context.take_lines(is_end=True)).values())

    async def flush(self) -> None:
        """Write what is new."""
        waiting, self._waiting = self._waiting, set()
        for context in waiting:
            if (note := context.take_note()) is not None:
                before = self._unwritten.get(context)
                self._unwritten[context] = note if before is None else before.followed_by(note)
            if context.has_logged:
                self._gather_lines(context)
        await self._flush_updates()
        await self._flush_lines()

    def _gather_lines(self, context: JobContext) -> None:
        if lines := context.take_lines():
            _merged(self._unwritten_lines.setdefault(context, {}), lines)
        if context.holds_lines:
            self._waiting.add(context)

    async def _flush_updates(self) -> None:
        if self._unwritten:
            try:
                await self.write(list(self._unwritten.values()))
            except DatabaseUnavailable:
                raise  # all of it goes with the next write
            except ForgeError:
                self._unwritten.clear()  # one that cannot be stored must not hold up the others
                raise
            self._unwritten.clear()

    async def _flush_lines(self) -> None:
        if not self._unwritten_lines:
            return
        entries = [
            AttemptLines(context.job_id, context.lease, list(lines.values()))
            for context, lines in self._unwritten_lines.items()
        ]
        try:
            await self._link.run(attempt_logs.add(entries, time.monotonic()))
        except DatabaseUnavailable:
            raise
        except ForgeError:
            self._unwritten_lines.clear()
            raise
        self._unwritten_lines.clear()

    async def write(self, notes: Sequence[AttemptUpdate]) -> set[UUID]:
        """Write these updates, and return the jobs whose were accepted."""
        accepted = set(await self._link.run(jobs.note(notes)))
        for note in notes:
            if note.id not in accepted:
                self._held.let_go(note.id, note.lease)
        self._reports.changed(list(accepted))
        return accepted


def _merged(
    known: dict[tuple[str, int], LogLine], lines: Sequence[LogLine]
) -> dict[tuple[str, int], LogLine]:
    for line in lines:
        known[line.kind, line.slot] = line
    return known
