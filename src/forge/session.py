"""What an app holds open in one event loop: its database, its wake-ups, what it follows."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from forge.config import Config
from forge.store.database import Database
from forge.store.embedded import SharedServer, open_shared
from forge.store.migrate import migrate
from forge.store.tenant import Callers
from forge.telemetry.call_meter import CallMeter
from forge.telemetry.measured import Measured
from forge.waker import Waker
from forge.watch import Watcher

if TYPE_CHECKING:
    import httpx


class Session:
    """Opened when first used, closed with its app."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: Config,
        database_url: str | None,
        measured: Measured,
        role: str | None = None,
    ) -> None:
        self._role = role
        self._measured = measured
        self.loop = loop
        self._config = config
        self._url = database_url
        self._server: SharedServer | None = None
        self._database: Database | None = None
        self._waker: Waker | None = None
        self._watcher: Watcher | None = None
        self._http: httpx.AsyncClient | None = None
        self._closing: list[Callable[[], Awaitable[None]]] = []
        self._opening = asyncio.Lock()

    @property
    def embedded_url(self) -> str | None:
        """The address of the embedded server while this session keeps it running."""
        return None if self._server is None else self._server.url

    async def database(self) -> Database:
        """Return the database, starting and migrating the embedded one where none is configured."""
        if self._database is None:
            async with self._opening:
                if self._database is None:
                    self._database = await self._open()
        return self._database

    def wake(self, jobs: int = 1, *, is_request: bool = False) -> None:
        """Notify idle workers of jobs that were committed, and busy ones of requests."""
        if self._database is not None:
            self._waker = self._waker or Waker(self._database)
            self._waker.wake(jobs, is_request=is_request)

    def wake_later(self) -> None:
        """Tell idle workers about what a caller's transaction will bring."""
        if self._database is not None:
            self._waker = self._waker or Waker(self._database)
            self._waker.wake_later()

    async def watcher(self) -> Watcher:
        """Return what follows jobs in this loop."""
        database = await self.database()
        self._watcher = self._watcher or Watcher(database)
        return self._watcher

    def http(self) -> "httpx.AsyncClient":
        """Return the HTTP client that this loop's actions share."""
        self._http = self._http or CallMeter(self._measured.metrics.api).client()
        return self._http

    def on_close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Have something closed before the database is."""
        self._closing.append(close)

    async def close(self) -> None:
        closing, self._closing = self._closing, []
        for close in closing:
            await close()
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()
        if self._watcher is not None:
            await self._watcher.close()
        if self._waker is not None:
            await self._waker.close()
        if self._database is not None:
            await self._database.close()
        if self._server is not None:
            await asyncio.to_thread(self._server.close)
        self._watcher = self._waker = self._database = self._server = None

    async def _open(self) -> Database:
        if self._url is not None:
            return self._database_at(self._url)
        server = await asyncio.to_thread(open_shared, self._config.embedded.folder)
        try:
            database = self._database_at(server.url)
            await migrate(database)
        except BaseException:
            await asyncio.to_thread(server.close)
            raise
        self._server = server
        return database

    def _database_at(self, url: str) -> Database:
        settings = self._config.database
        return Database(
            url,
            pool_size=settings.pool_size,
            pooler=settings.pooler,
            connect_timeout=settings.connect_timeout,
            observers=self._measured.observers,
            events=self._measured.events,
            callers=Callers(self._config.auth.secret),
            role=self._role,
        )
