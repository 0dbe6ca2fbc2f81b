"""Hints that a job is no longer this worker's: any login can send them, so the row decides."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

from forge.core.errors import ForgeError
from forge.store import jobs
from forge.store.link import Link

# Seconds between two reads, however many notifications arrive.
APART = 0.05
MOST_AT_ONCE = 1000


class Recheck:
    """Reads the rows of attempts that a notification names, and stops those that are over."""

    def __init__(
        self,
        link: Link,
        holds: Callable[[UUID, int], bool],
        let_go: Callable[[UUID, int], None],
    ) -> None:
        self._link = link
        self._holds = holds
        self._let_go = let_go
        self._doubtful: set[tuple[UUID, int]] = set()
        self._reading: asyncio.Task[None] | None = None

    def hint(self, job_id: UUID, lease: int) -> None:
        """An attempt of this worker may be over; others cost nothing."""
        if not self._holds(job_id, lease):
            return
        self._doubtful.add((job_id, lease))
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read())

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def _read(self) -> None:
        while self._doubtful:
            asked = [self._doubtful.pop() for _ in range(min(len(self._doubtful), MOST_AT_ONCE))]
            with suppress(ForgeError):  # the reconciler looks at every attempt before long
                for job_id, lease in await self._link.run(jobs.taken(asked)):
                    self._let_go(job_id, lease)
            await asyncio.sleep(APART)
