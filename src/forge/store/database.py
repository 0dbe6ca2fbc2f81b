"""Where the database is, and the ways to reach it: a link for a purpose, or a pool for many."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

import asyncpg

from forge.core.event import Events
from forge.store.connecting import Connector
from forge.store.fault import BROKEN
from forge.store.link import SESSION, Link, Observer, session_settings
from forge.store.links import Links
from forge.store.loss import watch
from forge.store.monitor import Monitor
from forge.store.statement import Statement
from forge.store.tenant import SETTING, Callers, act_in_transaction, execute, standing, take_role
from forge.store.times import read_all_times

T = TypeVar("T")
Connection = asyncpg.Connection
Pool = asyncpg.Pool


class Database:
    """One PostgreSQL database, for the event loop that uses it first."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        pooler: bool = False,
        connect_timeout: timedelta = timedelta(seconds=10),
        observers: list[Observer] | None = None,
        events: Events | None = None,
        callers: Callers | None = None,
        role: str | None = None,
    ) -> None:
        self.url = url
        # Forge's own statements take it where they may; handlers and mutations do not.
        self.role = role
        # Signs for whom its sessions act.
        self.callers = callers or Callers()
        self.pool_size = pool_size
        self.pooler = pooler
        self.connect_timeout = connect_timeout.total_seconds()
        # Told of every statement that a link runs.
        self.observers = [] if observers is None else observers
        self.events = Events() if events is None else events
        self._monitor = Monitor(self)
        self._connector = Connector(url, self.connect_timeout)
        self._links = Links(self.link, pool_size, self.connect_timeout)
        self._users: asyncpg.Pool[Any] | None = None
        self._opening = asyncio.Lock()
        self._is_bound: bool | None = None

    @property
    def place(self) -> str:
        """The name of the database and its hosts, for messages."""
        return self._connector.place

    async def connect(self, *, planned: bool = True) -> "asyncpg.Connection[Any]":
        """Open one connection; `planned` ones run Forge's own statements only."""
        connection = await self._connector.connect(**self._options(planned))
        if planned:
            await self._prepare(connection)
        return connection

    def link(self, *, timeout: float = 30, is_elsewhere: bool = False, keeps: bool = False) -> Link:
        """Return a connection that is reopened when it was lost.

        One that is used elsewhere, in the loop of another thread, is not watched over. One that
        `keeps` stays open when a statement takes too long.
        """
        link = Link(
            self.connect,
            place=lambda: self.place,
            callers=self.callers,
            role=self.role,
            pooler=self.pooler,
            timeout=timeout,
            observers=self.observers,
            opened=_nothing if is_elsewhere else self._monitor.watch,
            silence=self._monitor.silence,
            keeps=keeps,
        )
        if not is_elsewhere:
            self._monitor.add_link(link)
        return link

    async def run(self, statement: Statement[T], tenant: int | None = None) -> T:
        """Run one statement in a transaction of its own, for a tenant or for an operator."""
        return await self._links.run(statement, tenant)

    def acquire(self) -> AbstractAsyncContextManager["asyncpg.Connection[Any]"]:
        """Borrow a connection for Forge's own statements."""
        return self._links.connection()

    @asynccontextmanager
    async def transaction(
        self, tenant: int | None = None
    ) -> AsyncIterator["asyncpg.Connection[Any]"]:
        """Hold a transaction for Forge's own statements, for a tenant or for an operator."""
        async with self.acquire() as connection, connection.transaction():
            if tenant is not None or self.pooler:
                await execute(connection, act_in_transaction(self.callers.tenant(tenant)))
            if self.pooler and self.role is not None:
                await execute(connection, take_role(self.role, in_transaction=True))
            yield connection

    async def is_bound(self) -> bool:
        """Whether this login has to name the caller it acts for; asked once."""
        if self._is_bound is None:
            self._is_bound = bool((await self.run(standing()))["is_bound"])
        return self._is_bound

    async def users(self) -> "asyncpg.Pool[Any]":
        """Return the pool of the handlers: theirs alone, so that they cannot starve the worker."""
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
    """Leave the next user of a pooled session no settings, and no tables that hide Forge's own."""
    await connection.execute(connection.get_reset_query() + "\ndiscard temp;")


async def _close(pool: "asyncpg.Pool[Any]") -> None:
    try:
        async with asyncio.timeout(5):
            await pool.close()
    except BROKEN:
        pool.terminate()


def _nothing() -> None: ...
