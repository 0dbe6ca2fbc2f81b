"""Progress, checkpoints and heartbeats of running attempts, gathered and written together."""

from collections.abc import Callable, Sequence
from uuid import UUID

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

    def add(self, context: JobContext) -> None:
        """An attempt has something to write down."""
        if context.is_noted_as_it_goes:
            self._waiting.add(context)

    def take(self, context: JobContext) -> Note | None:
        """Return what an attempt that has ended did not get written."""
        note, context.note = context.note, None
        self._waiting.discard(context)
        return note

    async def flush(self) -> None:
        """Write down whatever is new."""
        if not self._waiting:
            return
        contexts, self._waiting = list(self._waiting), set()
        taken = [(context, note) for context in contexts if (note := context.note) is not None]
        for context, _ in taken:
            context.note = None
        if taken:
            await self.write([note for _, note in taken])

    async def write(self, notes: Sequence[Note]) -> set[UUID]:
        """Write these notes and return whose were accepted."""
        accepted = set(await self._link.run(jobs.note(notes)))
        for note in notes:
            if note.id not in accepted:
                self._refused(note.id, note.lease)
        self._changed(list(accepted))
        return accepted
