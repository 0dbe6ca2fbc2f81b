"""How heartbeats reach the database: by their own connection, or by another of the worker."""

import asyncio
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from forge.core.errors import DatabaseUnavailable
from forge.core.events import Events
from forge.store.connection.database import Database
from forge.store.connection.driver_errors import is_full
from forge.store.connection.link import Link
from forge.store.statement import Statement

T = TypeVar("T")


class WorkerLinks:
    """The connections that the worker's event loop keeps open."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._loop = asyncio.get_running_loop()
        self._links: list[Link] = []

    def open(self) -> Link:
        """Return a new link, which is closed with the others."""
        self._links.append(link := self._database.link())
        return link

    def run_from_thread(self, statement: Statement[T]) -> "Future[T]":
        """Run a statement, from another thread, on any link that is connected."""
        return asyncio.run_coroutine_threadsafe(self._run_on_any(statement), self._loop)

    async def close(self) -> None:
        for link in self._links:
            await link.close()

    async def _run_on_any(self, statement: Statement[T]) -> T:
        connected = [link for link in self._links if link.connection is not None]
        if not connected:
            raise DatabaseUnavailable(
                "no other connection is open; wait until the database answers"
            )
        # An idle one where there is one.
        return await min(connected, key=lambda link: link.waits or 0).run(statement)


class HeartbeatCarrier:
    """Runs heartbeats, in the loop of the heart's thread."""

    def __init__(
        self, database: Database, timeout: float, links: WorkerLinks, events: Events
    ) -> None:
        self._database = database
        self._events = events
        self._timeout = timeout
        self._links = links
        self.link = self._open()
        # When the server was last known to have no connection left.
        self.full_at = float("-inf")
        # When the last try was sent.
        self.sent_at = float("-inf")

    async def run(self, statement: Statement[T]) -> T:
        """Run a heartbeat, or raise the error of its own connection."""
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
        return self._database.link(timeout=self._timeout, is_elsewhere=True, keeps=True)

    async def _run_afresh(self, statement: Statement[T], _error: DatabaseUnavailable) -> T:
        """Run it by a new connection, which replaces the silent one.

        Until that answers, the old one is kept: on a full server there may be no other.
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
                async with asyncio.timeout(self._timeout):
                    answer: T = await asyncio.wrap_future(self._links.run_from_thread(statement))
                    return answer
        raise error


def _is_silence(error: DatabaseUnavailable) -> bool:
    return isinstance(error.__cause__, TimeoutError)
