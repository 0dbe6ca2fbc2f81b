"""A pool of links: each caller takes the most recently used idle link, or waits for one."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from forge.core.errors import DatabaseUnavailable
from forge.store.connection.link import Link
from forge.store.statement import Statement

if TYPE_CHECKING:
    import asyncpg

T = TypeVar("T")


class LinkPool:
    """A pool for statements that change no session state except the tenant, which links track.

    asyncpg's own pool starts a task and a round trip for each release, which costs as much as a
    statement that inserts one row.
    """

    def __init__(self, make: Callable[[], Link], size: int, timeout: float) -> None:
        self._make = make
        self._size = size
        self._timeout = timeout
        self._idle: list[Link] = []
        self._made: set[Link] = set()
        self._waiting: deque[asyncio.Future[Link]] = deque()

    async def run(self, statement: Statement[T], tenant: int | None = None) -> T:
        """Run one statement in its own transaction, for a tenant or for an operator."""
        link = self._take(tenant) if self._idle else await self._make_or_wait()
        try:
            return await link.run(statement, tenant)
        finally:
            await self._return(link)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator["asyncpg.Connection[Any]"]:
        """Borrow a connection for more than one statement."""
        link = self._take(None) if self._idle else await self._make_or_wait()
        try:
            async with link.lend() as connection:
                yield connection
        finally:
            await self._return(link)

    async def close(self) -> None:
        """Close idle links at once, and links in use when they are released."""
        idle, self._idle, self._made = self._idle, [], set()
        waiting, self._waiting = self._waiting, deque()
        for turn in waiting:
            if not turn.done():
                turn.set_exception(DatabaseUnavailable("the app was closed; open it again"))
        for link in idle:
            await link.close()

    def _take(self, tenant: int | None) -> Link:
        """Take the most recently used link that already acts for the tenant, or else of all."""
        for place in range(len(self._idle) - 1, -1, -1):
            if self._idle[place].tenant == tenant:
                return self._idle.pop(place)
        return self._idle.pop()

    async def _make_or_wait(self) -> Link:
        if len(self._made) < self._size:
            self._made.add(link := self._make())
            return link
        turn: asyncio.Future[Link] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._timeout):
                return await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._release(turn.result())
            if isinstance(error, TimeoutError):
                raise self._exhausted() from None
            raise

    def _exhausted(self) -> DatabaseUnavailable:
        silent = [link for link in self._made if (link.waits or 0) >= self._timeout / 2]
        if len(silent) == len(self._made):
            return DatabaseUnavailable(
                f"the database does not answer: all {len(silent)} connections have been waiting "
                f"for {min(link.waits or 0 for link in silent):.1f} s; check that it is running "
                "and reachable"
            )
        return DatabaseUnavailable(
            f"no connection became free within {self._timeout:g} s; raise [database] "
            "pool_size, or dispatch in bulk"
        )

    async def _return(self, link: Link) -> None:
        """Return a link to the pool, or close it if the pool was closed in the meantime."""
        if link in self._made:
            self._release(link)
        else:
            await link.close()

    def _release(self, link: Link) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(link)
                return
        self._idle.append(link)
