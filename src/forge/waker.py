"""Wake-ups after dispatch: debounced, on a connection of their own, never inside a transaction."""

import asyncio
import random

from forge.core.errors import ForgeError
from forge.core.herd import call
from forge.store.database import Database
from forge.store.link import Link
from forge.store.notify import WAKE, send

# A notification takes a lock that all notifying commits share: one speaks for many dispatches.
APART = 0.005
# Whatever a whole transaction brought: every worker may find something to do.
MANY = 1_000_000
# A caller's own transaction commits when it likes: a few later looks find what it brought.
AFTER_THE_CALLERS_COMMIT = (0.02, 0.2)


class Waker:
    """Tells idle workers to look, at once for the first dispatch and then at most every few ms."""

    def __init__(self, database: Database) -> None:
        self._link: Link = database.link(timeout=5)
        self._task: asyncio.Task[None] | None = None
        self._jobs = 0
        self._has_request = False
        # When to look for what callers have committed, by the loop's clock, and what waits for it.
        self._looks: list[float] = []
        self._looking: asyncio.Task[None] | None = None

    def wake(self, jobs: int = 1, *, is_request: bool = False) -> None:
        """Announce jobs that were committed."""
        self._jobs += jobs
        self._has_request |= is_request
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._send())

    def wake_later(self) -> None:
        """Something will be committed, by somebody else, soon."""
        loop = asyncio.get_running_loop()
        if len(self._looks) < len(AFTER_THE_CALLERS_COMMIT):
            self._looks += [loop.time() + delay for delay in AFTER_THE_CALLERS_COMMIT]
        # A task, not timers: a loop that ends cancels its tasks, and must begin no more of them.
        if self._looking is None or self._looking.done():
            self._looking = loop.create_task(self._look())

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        if self._task is not None:
            await self._task
        await self._link.close()

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        while self._looks:
            await asyncio.sleep(min(self._looks) - loop.time())
            now = loop.time()
            self._looks = [at for at in self._looks if at > now]
            self.wake()

    async def _send(self) -> None:
        while self._jobs:
            jobs, self._jobs = self._jobs, 0
            is_request, self._has_request = self._has_request, False
            hint = call(jobs, random.getrandbits(31), is_request=is_request)
            try:
                await self._link.run(send(WAKE, hint))
            except ForgeError:
                return  # it was only a hint: the workers' poll finds the row
            await asyncio.sleep(APART)
