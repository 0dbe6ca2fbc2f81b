"""A few links for many callers: whoever comes takes the one last used, or waits for one."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from forge.core.errors import DatabaseUnavailable
from forge.store.link import Link
from forge.store.statement import Statement

if TYPE_CHECKING:
    import asyncpg

T = TypeVar("T")


class Links:
    """A pool for statements that leave no state behind but the tenant, of which each link knows.

    asyncpg's own pool starts a task and a trip for each release, which costs as much as the
    statement itself when that only inserts a row.
    """

    def __init__(self, make: Callable[[], Link], size: int, patience: float) -> None:
        self._make = make
        self._size = size
        self._patience = patience
        self._idle: list[Link] = []
        self._made: set[Link] = set()
        self._waiting: deque[asyncio.Future[Link]] = deque()

    async def run(self, statement: Statement[T], tenant: int | None = None) -> T:
        """Run one statement in a transaction of its own, for a tenant or for an operator."""
        link = self._take(tenant) if self._idle else await self._wait()
        try:
            return await link.run(statement, tenant)
        finally:
            await self._end(link)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator["asyncpg.Connection[Any]"]:
        """Borrow a connection for more than one statement."""
        link = self._take(None) if self._idle else await self._wait()
        try:
            async with link.lend() as connection:
                yield connection
        finally:
            await self._end(link)

    async def close(self) -> None:
        """Close what is idle at once, and what is in use when it is given back."""
        idle, self._idle, self._made = self._idle, [], set()
        waiting, self._waiting = self._waiting, deque()
        for turn in waiting:
            if not turn.done():
                turn.set_exception(DatabaseUnavailable("the app was closed; open it again"))
        for link in idle:
            await link.close()

    def _take(self, tenant: int | None) -> Link:
        """Take the link last used of those that act for the tenant already, or of all."""
        for place in range(len(self._idle) - 1, -1, -1):
            if self._idle[place].tenant == tenant:
                return self._idle.pop(place)
        return self._idle.pop()

    async def _wait(self) -> Link:
        if len(self._made) < self._size:
            self._made.add(link := self._make())
            return link
        turn: asyncio.Future[Link] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._patience):
                return await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._give_back(turn.result())
            if isinstance(error, TimeoutError):
                raise self._none_free() from None
            raise

    def _none_free(self) -> DatabaseUnavailable:
        silent = [link for link in self._made if (link.waits or 0) >= self._patience / 2]
        if len(silent) == len(self._made):
            return DatabaseUnavailable(
                f"the database does not answer: all {len(silent)} connections have waited for it "
                f"for {min(link.waits or 0 for link in silent):.1f} s; check that it runs and can "
                "be reached"
            )
        return DatabaseUnavailable(
            f"no connection came free within {self._patience:g} s; raise [database] "
            "pool_size, or dispatch in bulk"
        )

    async def _end(self, link: Link) -> None:
        """Give a link back, or close it where the pool was closed while it was in use."""
        if link in self._made:
            self._give_back(link)
        else:
            await link.close()

    def _give_back(self, link: Link) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(link)
                return
        self._idle.append(link)
