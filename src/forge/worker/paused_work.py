"""Releases jobs that were fetched ahead and have been paused since.

Claims themselves leave out what is paused, so that a worker without such jobs asks nothing.
"""

from forge.core.job import Job
from forge.store import pauses
from forge.store.connection.link import Link
from forge.worker.held_work import HeldWork

# Half of the second within which workers see a pause.
INTERVAL = 0.5


class PausedWork:
    """Looks for pauses while jobs wait in this worker for a slot."""

    def __init__(self, link: Link, held: HeldWork) -> None:
        self._link = link
        self._held = held

    async def release(self) -> None:
        """Release the jobs that wait here and are paused."""
        if not self._held.ahead:
            return
        found = await self._link.run(pauses.current())

        def is_paused(job: Job) -> bool:
            return any(pause.covers(job.type, job.queue) for pause in found)

        if found:
            self._held.release_covered(is_paused)
