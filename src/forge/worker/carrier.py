"""How heartbeats reach the database: by their own connection, or by another of the worker."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from forge.core.errors import DatabaseUnavailable
from forge.core.event import Events
from forge.store.database import Database
from forge.store.fault import is_full
from forge.store.link import Link
from forge.store.statement import Statement

T = TypeVar("T")
# Sends a statement by another connection of the worker, in whichever loop that one is used.
Send = Callable[[Statement[Any]], "Future[Any]"]


class Carrier:
    """Runs heartbeats, in the loop of the heart's thread."""

    def __init__(
        self, database: Database, patience: float, otherwise: Send, events: Events
    ) -> None:
        self._database = database
        self._events = events
        self._patience = patience
        self._otherwise = otherwise
        self.link = self._open()
        # When the server was last known to have no connection left.
        self.full_at = float("-inf")
        # When the last try was sent.
        self.sent_at = float("-inf")

    async def run(self, statement: Statement[T]) -> T:
        """Run a heartbeat, or raise what its own connection failed of."""
        self.sent_at = time.monotonic()
        try:
            return await self.link.run(statement)
        except DatabaseUnavailable as error:
            again = self._run_afresh if _is_silence(error) else self._run_otherwise
            answer = await again(statement, error)
            self._events.notice(
                "warning", "a heartbeat was sent again by another connection", error=str(error)
            )
            return answer

    async def close(self) -> None:
        await self.link.close()

    def _open(self) -> Link:
        return self._database.link(timeout=self._patience, is_elsewhere=True, keeps=True)

    async def _run_afresh(self, statement: Statement[T], _error: DatabaseUnavailable) -> T:
        """Run it by a fresh connection, which takes the place of the silent one.

        Until it answers, the old one is kept: on a full server there may be no other.
        """
        fresh = self._open()
        self.sent_at = time.monotonic()
        try:
            answer = await fresh.run(statement)
        except DatabaseUnavailable as error:
            await fresh.close()
            return await self._run_otherwise(statement, error)
        self.link.drop()
        self.link = fresh
        return answer

    async def _run_otherwise(self, statement: Statement[T], error: DatabaseUnavailable) -> T:
        """Run it by another connection, which does not help while the server is silent."""
        if is_full(error.__cause__):
            self.full_at = time.monotonic()
        if not _is_silence(error):
            self.sent_at = time.monotonic()
            with suppress(DatabaseUnavailable, TimeoutError):
                async with asyncio.timeout(self._patience):
                    answer: T = await asyncio.wrap_future(self._otherwise(statement))
                    return answer
        raise error


async def run_on_any(links: Sequence[Link], statement: Statement[T]) -> T:
    """Run a statement on a link that is connected, on an idle one where there is one."""
    connected = [link for link in links if link.connection is not None]
    if not connected:
        raise DatabaseUnavailable("no other connection is open; wait until the database answers")
    return await min(connected, key=lambda link: link.waits or 0).run(statement)


def _is_silence(error: DatabaseUnavailable) -> bool:
    return isinstance(error.__cause__, TimeoutError)
