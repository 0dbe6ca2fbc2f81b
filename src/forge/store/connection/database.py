"""A PostgreSQL database and its connections: single links, a pool of links, the handlers' pool."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import asyncpg

from forge.core.events import Events
from forge.store.connection.blame import watch
from forge.store.connection.driver_errors import BROKEN
from forge.store.connection.link import (
    SESSION,
    Link,
    LinkListeners,
    Observer,
    SessionOptions,
    prepare_transaction,
    session_settings,
)
from forge.store.connection.link_pool import LinkPool
from forge.store.connection.monitor import Monitor
from forge.store.connection.opening import Connector
from forge.store.connection.tenant import (
    SETTING,
    Callers,
    act_in_transaction,
    execute,
    standing,
    take_role,
)
from forge.store.statement import Statement

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_INFINITY = 2**63 - 1


async def read_all_times(connection: "asyncpg.Connection[Any]") -> None:
    """Clamp values outside the range of Python, so that this connection can read every row."""
    for name, encoder, decoder in (
        ("timestamptz", _encode_time, _decode_time),
        ("interval", _encode_interval, _decode_interval),
    ):
        await connection.set_type_codec(
            name, schema="pg_catalog", encoder=encoder, decoder=decoder, format="tuple"
        )


def _encode_time(time: datetime) -> tuple[int]:
    if time.tzinfo is None:
        raise ValueError(f"{time} has no time zone")
    if time == _LAST:
        return (_INFINITY,)
    if time == _FIRST:
        return (-_INFINITY - 1,)
    return ((time - _EPOCH) // _MICROSECOND,)


def _decode_time(stored: tuple[int]) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=stored[0])
    except OverflowError:
        return _LAST if stored[0] > 0 else _FIRST


def _encode_interval(interval: timedelta) -> tuple[int, int, int]:
    return 0, interval.days, (interval - timedelta(interval.days)) // _MICROSECOND


def _decode_interval(stored: tuple[int, int, int]) -> timedelta:
    months, days, microseconds = stored
    years = int(months / 12)
    # Years and months have the lengths that asyncpg gives them.
    days += years * 365 + (months - years * 12) * 30
    try:
        return timedelta(days, microseconds=microseconds)
    except OverflowError:
        return timedelta.max if days > 0 else timedelta.min


T = TypeVar("T")
Connection = asyncpg.Connection
Pool = asyncpg.Pool


class Database:
    """One PostgreSQL database, for the event loop that uses it first."""

    def __init__(
        self,
        url: str,
        *,
        session: SessionOptions | None = None,
        pool_size: int = 10,
        connect_timeout: timedelta = timedelta(seconds=10),
        observers: list[Observer] | None = None,
        events: Events | None = None,
    ) -> None:
        self.url = url
        self._session = session or SessionOptions(Callers())
        self.callers, self.role, self.pooler = self._session
        self.pool_size = pool_size
        self.connect_timeout = connect_timeout.total_seconds()
        # Called after every statement that a link runs.
        self.observers = [] if observers is None else observers
        self.events = Events() if events is None else events
        self._monitor = Monitor(self)
        self._connector = Connector(url, self.connect_timeout)
        self._links = LinkPool(self.link, pool_size, self.connect_timeout)
        self._users: asyncpg.Pool[Any] | None = None
        self._opening = asyncio.Lock()
        self._is_bound: bool | None = None

    @property
    def place(self) -> str:
        """The name of the database and its hosts, for messages."""
        return self._connector.place

    async def connect(self, *, planned: bool = True) -> "asyncpg.Connection[Any]":
        """Open one connection; `planned` ones are for Forge's own statements only."""
        connection = await self._connector.connect(**self._options(planned))
        if planned:
            await self._prepare(connection)
        return connection

    def link(self, *, timeout: float = 30, is_elsewhere: bool = False, keeps: bool = False) -> Link:
        """Return a connection that is reopened when it is lost.

        The monitor ignores links that are used on another thread's loop (`is_elsewhere`). With
        `keeps` the connection stays open when a statement times out.
        """
        listeners = LinkListeners(
            self.observers,
            opened=_nothing if is_elsewhere else self._monitor.watch,
            silence=self._monitor.silence,
        )
        link = Link(
            self.connect,
            lambda: self.place,
            self._session,
            listeners,
            timeout=timeout,
            keeps=keeps,
        )
        if not is_elsewhere:
            self._monitor.add_link(link)
        return link

    async def run(self, statement: Statement[T], tenant: int | None = None) -> T:
        """Run one statement in its own transaction, for a tenant or for an operator."""
        return await self._links.run(statement, tenant)

    def acquire(self) -> AbstractAsyncContextManager["asyncpg.Connection[Any]"]:
        """Borrow a connection for Forge's own statements."""
        return self._links.connection()

    @asynccontextmanager
    async def transaction(
        self, tenant: int | None = None
    ) -> AsyncIterator["asyncpg.Connection[Any]"]:
        """Open a transaction for Forge's own statements, for a tenant or for an operator."""
        caller = self.callers.tenant(tenant)
        async with (
            self.acquire() as connection,
            connection.transaction(isolation="read_committed"),
        ):
            if self.pooler:
                await prepare_transaction(connection, caller, self.role)
            elif tenant is not None:
                await execute(connection, act_in_transaction(caller))
            yield connection

    async def is_bound(self) -> bool:
        """Whether this login must name the caller it acts for; queried once."""
        if self._is_bound is None:
            self._is_bound = bool((await self.run(standing()))["is_bound"])
        return self._is_bound

    async def users(self) -> "asyncpg.Pool[Any]":
        """Return the handlers' pool: separate, so that handlers cannot starve the worker."""
        async with self._opening:
            if self._users is None:
                self._users = await asyncpg.create_pool(
                    min_size=0,
                    max_size=self.pool_size,
                    connect=self._connect_for_users,
                    init=watch,
                    reset=_forget_session,
                )
        return self._users

    async def close(self) -> None:
        await self._monitor.close()
        await self._links.close()
        users, self._users = self._users, None
        if users is not None:
            await _close(users)

    async def _prepare(self, connection: "asyncpg.Connection[Any]") -> None:
        try:
            await read_all_times(connection)
            if self.role is not None and not self.pooler:
                await execute(connection, take_role(self.role, in_transaction=False))
        except BaseException:
            connection.terminate()
            raise

    def _options(self, planned: bool) -> dict[str, Any]:
        own = {**SESSION, SETTING: self.callers.tenant(None)} if planned else None
        return {
            "statement_cache_size": 0 if self.pooler else 200,
            "settings": session_settings(self.pooler, own),
        }

    async def _connect_for_users(self, _dsn: str | None, **given: Any) -> "asyncpg.Connection[Any]":
        connection = await self._connector.connect(**self._options(planned=False), **given)
        self._monitor.add_handlers(connection)
        return connection


async def _forget_session(connection: "asyncpg.Connection[Any]") -> None:
    """Reset settings and temporary tables, which could shadow Forge's, for the next user."""
    await connection.execute(connection.get_reset_query() + "\ndiscard temp;")


async def _close(pool: "asyncpg.Pool[Any]") -> None:
    try:
        async with asyncio.timeout(5):
            await pool.close()
    except BROKEN:
        pool.terminate()


def _nothing() -> None: ...
