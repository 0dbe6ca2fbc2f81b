"""Progress, checkpoints and heartbeats of running attempts, gathered and written together."""

from collections.abc import Callable, Sequence
from uuid import UUID

from forge.core.errors import DatabaseUnavailable, ForgeError
from forge.store import jobs
from forge.store.jobs import Note
from forge.store.link import Link
from forge.worker.context import JobContext

# Often enough for a browser to look alive, seldom enough that a tight loop costs nothing.
INTERVAL = 0.1


class Notes:
    """Keeps the newest note of each attempt until the next write."""

    def __init__(
        self,
        link: Link,
        changed: Callable[[Sequence[UUID]], None],
        refused: Callable[[UUID, int], None],
    ) -> None:
        self._link = link
        self._changed = changed
        self._refused = refused
        self._waiting: set[JobContext] = set()
        # On their way, or sent in vain: each stays until the database has it.
        self._unwritten: dict[JobContext, Note] = {}

    def add(self, context: JobContext) -> None:
        """An attempt has something to write down."""
        self._waiting.add(context)

    def take(self, context: JobContext) -> Note | None:
        """Return what an attempt noted that is not known to be written."""
        self._waiting.discard(context)
        before, note = self._unwritten.pop(context, None), context.take_note()
        return note if before is None else before.followed_by(note)

    async def flush(self) -> None:
        """Write down whatever is new."""
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
                self._unwritten.clear()  # one that cannot be stored may not hold up the others
                raise
            self._unwritten.clear()

    async def write(self, notes: Sequence[Note]) -> set[UUID]:
        """Write these notes and return whose were accepted."""
        accepted = set(await self._link.run(jobs.note(notes)))
        for note in notes:
            if note.id not in accepted:
                self._refused(note.id, note.lease)
        self._changed(list(accepted))
        return accepted
