"""What an app holds open in one event loop: its database, its wake-ups, the jobs it follows."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from forge.config.settings import Config
from forge.config.test_guard import check_database
from forge.core.errors import InvalidValue
from forge.core.events import Events
from forge.jobs.batcher import DispatchBatcher
from forge.jobs.follow import Watcher
from forge.store.borrowed.app_database import BorrowedDatabase
from forge.store.connection.database import Database
from forge.store.connection.link import Observer, SessionOptions
from forge.store.connection.tenant import Callers
from forge.store.embedded import SharedServer, open_shared
from forge.store.migrate import migrate
from forge.store.statement import Statement
from forge.telemetry.metrics.external_calls import CallMeter
from forge.telemetry.metrics.registries import Metrics
from forge.transports.postgres import Waker

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
# A function where a framework names the database, and may change it before the app is used.
ConfiguredUrl = str | None | Callable[[], str | None]


class Telemetry(NamedTuple):
    """What an app reports: its events, its metrics, and the statements that it runs."""

    events: Events
    metrics: Metrics
    observers: list[Observer]


class Sessions:
    """Finds the session of the running event loop, and opens it when there is none.

    Connections belong to the loop that opened them: another loop gets a session of its own.
    """

    def __init__(self, config: Config, telemetry: Telemetry, configured_url: ConfiguredUrl) -> None:
        self.config = config
        self._telemetry = telemetry
        self._configured_url = configured_url
        # The database role that Forge's own statements take.
        self.role: str | None = None
        self._session: Session | None = None

    @property
    def configured_url(self) -> str | None:
        """The URL for the connections that are opened next; None is the embedded PostgreSQL."""
        url = self._configured_url
        return url() if callable(url) else url

    @configured_url.setter
    def configured_url(self, url: ConfiguredUrl) -> None:
        self._configured_url = url

    @property
    def is_open(self) -> bool:
        return self._session is not None and self._session.is_open

    @property
    def database_url(self) -> str | None:
        """The configured URL, or that of the embedded PostgreSQL while it runs for this app."""
        url = self.configured_url
        return url if url is not None or self._session is None else self._session.embedded_url

    def here(self) -> "Session":
        """Return the session of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.loop is not loop:
            self._session = self.make()
        return self._session

    def make(self) -> "Session":
        """Return a new session for the running event loop, which the caller closes."""
        loop = asyncio.get_running_loop()
        return Session(loop, self.config, self._telemetry, self.configured_url, self.role)

    def make_on(self, conn: Any) -> "BorrowedSession":
        """Return a session whose statements all run on a borrowed connection."""
        loop = asyncio.get_running_loop()
        return BorrowedSession(loop, self.config, self._telemetry, conn)

    @contextmanager
    def using(self, session: "Session") -> Iterator[None]:
        """Use a session of the caller's in its event loop, instead of the app's own."""
        own, self._session = self._session, session
        try:
            yield
        finally:
            self._session = own

    async def database(self) -> Database:
        """Return the database as the running event loop reaches it."""
        return await self.here().database()

    async def run(self, statement: Statement[T]) -> T:
        """Run one statement on a connection of the app's own."""
        return await (await self.here().database()).run(statement)

    def wake_later(self) -> None:
        """Notify idle workers of jobs that a caller will commit, if a session is open."""
        if self._session is not None:
            self._session.wake_later()

    def clone(self) -> "Sessions":
        """Return the same settings without a session."""
        new = Sessions(self.config, self._telemetry, self._configured_url)
        new.role = self.role
        return new

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class Session:
    """Opened when first used, closed with its app."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: Config,
        telemetry: Telemetry,
        database_url: str | None,
        role: str | None,
    ) -> None:
        self._role = role
        self._telemetry = telemetry
        self.loop = loop
        self._config = config
        self._url = database_url
        self._server: SharedServer | None = None
        self._database: Database | None = None
        # None until the first dispatch.
        self.batcher: DispatchBatcher | None = None
        self._waker: Waker | None = None
        self._watcher: Watcher | None = None
        self._http: httpx.AsyncClient | None = None
        self._closing: list[Callable[[], Awaitable[None]]] = []
        self._opening = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        """Whether it has connected, or begun to."""
        return self._database is not None or self._opening.locked()

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

    async def open_batcher(self) -> DispatchBatcher:
        """Return what inserts the jobs that this loop dispatches."""
        database = await self.database()
        if self.batcher is None:
            self.batcher = DispatchBatcher(database.run, self.wake, database.pool_size)
        return self.batcher

    def wake(self, jobs: int = 1, *, is_request: bool = False) -> None:
        """Notify idle workers of jobs that were committed, and busy ones of requests."""
        if self._database is not None:
            self._waker = self._waker or Waker(self._database)
            self._waker.wake(jobs, is_request=is_request)

    def wake_later(self) -> None:
        """Notify idle workers of jobs that a caller's transaction will commit."""
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
        self._http = self._http or CallMeter(self._telemetry.metrics.api).client()
        return self._http

    def on_close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Close something before the database."""
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
        if self.batcher is not None:
            await self.batcher.close()
        if self._waker is not None:
            await self._waker.close()
        if self._database is not None:
            await self._database.close()
        if self._server is not None:
            await asyncio.to_thread(self._server.close)
        self.batcher = self._watcher = self._waker = self._database = self._server = None

    async def _open(self) -> Database:
        check_database(self._url)
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
            session=SessionOptions(Callers(self._config.auth.secret), self._role, settings.pooler),
            pool_size=settings.pool_size,
            connect_timeout=settings.connect_timeout,
            observers=self._telemetry.observers,
            events=self._telemetry.events,
        )


class BorrowedSession(Session):
    """Runs every statement of an app on one borrowed connection, in its transaction."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, config: Config, telemetry: Telemetry, conn: Any
    ) -> None:
        super().__init__(loop, config, telemetry, None, None)
        self.borrowed = BorrowedDatabase(conn, telemetry.observers)

    async def _open(self) -> Database:
        return self.borrowed

    def wake(self, jobs: int = 1, *, is_request: bool = False) -> None:
        """Wake no worker: none sees the jobs before the commit."""

    def wake_later(self) -> None:
        """Wake no worker: none sees the jobs before the commit."""

    async def watcher(self) -> Watcher:
        raise InvalidValue(
            "a job cannot be followed on conn=: no other connection sees its transaction; run it "
            "with run_one(handle, conn=…) or run_all(app, conn=…), which return when it has ended"
        )
