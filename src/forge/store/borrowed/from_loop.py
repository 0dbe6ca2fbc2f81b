"""One of Forge's own connections whose event loop runs in another thread."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

import asyncpg

from forge.store.borrowed.from_asyncpg import copy_blocks
from forge.store.bulk_copy import CopyData
from forge.store.statement import Rows

# How many blocks may be queued ahead of the server.
AHEAD = 4


class FromLoop:
    """Serves a sync caller: inputs are produced in its thread and sent from the loop's thread.

    So a generator of inputs can use thread-bound objects, such as Django models, and can be slow
    without blocking the loop.
    """

    waits = False

    def __init__(self, conn: "asyncpg.Connection[Any]", loop: asyncio.AbstractEventLoop) -> None:
        self._conn = conn
        self._loop = loop

    async def fetch(self, sql: str, args: Sequence[Any]) -> Rows:
        fetching = asyncio.run_coroutine_threadsafe(self._conn.fetch(sql, *args), self._loop)
        found: Rows = fetching.result()
        return found

    async def copy(self, copy: CopyData) -> int:
        blocks: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue(AHEAD)
        copying = asyncio.run_coroutine_threadsafe(
            copy_blocks(self._conn, copy.columns, _taken(blocks)), self._loop
        )
        try:
            for block in copy.blocks:
                self._put(blocks, block, copying)
        except BaseException as error:
            self._put(blocks, error, copying)
            wait([copying])
            raise
        self._put(blocks, None, copying)
        return copying.result()

    def _put(
        self,
        blocks: "asyncio.Queue[bytes | BaseException | None]",
        block: bytes | BaseException | None,
        copying: "Future[int]",
    ) -> None:
        putting = asyncio.run_coroutine_threadsafe(blocks.put(block), self._loop)
        either: list[Future[Any]] = [putting, copying]
        wait(either, return_when=FIRST_COMPLETED)
        if not putting.done():
            putting.cancel()  # the copy has failed and takes no more blocks


async def _taken(blocks: "asyncio.Queue[bytes | BaseException | None]") -> AsyncIterator[bytes]:
    while (block := await blocks.get()) is not None:
        if isinstance(block, BaseException):
            raise block
        yield block
