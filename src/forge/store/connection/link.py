"""One connection that reopens itself: opened on first use, dropped when it fails."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from time import monotonic, perf_counter
from typing import Any, NamedTuple, TypeVar

import asyncpg

from forge.core.errors import ForgeError
from forge.store.connection.driver_errors import (
    BROKEN,
    DRIVER_ERRORS,
    is_lost,
    translated,
    unavailable,
)
from forge.store.connection.tenant import (
    SETTING,
    Callers,
    act,
    as_secured,
    execute,
    is_secured,
    secured_text,
    standing,
    take_role,
)
from forge.store.statement import Statement, load

T = TypeVar("T")
# Called after each statement with the seconds it took, and its error if it failed.
Observer = Callable[[Statement[Any], float, ForgeError | None], None]

# Forge's statements are each written for one plan that uses an index. With statistics from when the
# table was empty, or a bad estimate for a list, the planner would choose a scan of the whole table.
PLANNER = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}
# Each statement must see what was committed before it, whatever the server's default isolation is.
SESSION = {**PLANNER, "default_transaction_isolation": "read committed"}


class SessionOptions(NamedTuple):
    """How the sessions of a database act."""

    # Names and signs the callers that a session acts for.
    callers: Callers
    # Forge's own statements switch to this role if permitted; handlers and mutations do not.
    role: str | None = None
    # Whether a transaction pooler stands before the server, so that session state is lost.
    pooler: bool = False


class LinkListeners(NamedTuple):
    """Functions that a link calls."""

    observers: Sequence[Observer]
    # After connecting.
    opened: Callable[[], None]
    # When the server stops answering, or answers again.
    silence: Callable[[], None]


class Link:
    """A connection for one purpose, used by one statement at a time."""

    def __init__(
        self,
        connect: Callable[[], Awaitable["asyncpg.Connection[Any]"]],
        place: Callable[[], str],
        session: SessionOptions,
        listeners: LinkListeners,
        *,
        timeout: float = 30,
        keeps: bool = False,
    ) -> None:
        self._connect = connect
        self._place = place
        self._observers, self._on_open, self._on_silence = listeners
        self._was_silent = False
        # Whether the connection stays open after a statement times out.
        self._keeps = keeps and not session.pooler
        self._sent_at: float | None = None
        self.opened_at = 0.0
        # The role is set per transaction behind a pooler, otherwise when the session opens.
        self._callers, self._role, self._pooler = session
        self._timeout = timeout
        self._connection: asyncpg.Connection[Any] | None = None
        self._secured: bool | None = None
        self._bound: bool | None = None
        # The tenant the session acts for; None is an operator, as in a new session.
        self.tenant: int | None = None
        self._act_again_at = 0.0
        self._lock = asyncio.Lock()

    async def run(self, statement: Statement[T], tenant: int | None = None) -> T:
        """Run one statement in its own transaction, for a tenant or for an operator."""
        async with self._lock:
            began = self._sent_at = perf_counter()
            try:
                found = await self._fetch(statement, tenant)
            except ForgeError as error:
                self._observe(statement, perf_counter() - began, error)
                raise
            finally:
                self._sent_at = None
            self._observe(statement, perf_counter() - began, None)
            return statement.read(found)

    async def _fetch(self, statement: Statement[Any], tenant: int | None) -> Any:
        connection = await self._opened()
        try:
            if secured_text(statement.sql) is not None and await self._is_secured(connection):
                statement = as_secured(statement)
            if self._pooler:
                caller = self._callers.tenant(tenant)
                return await _fetch_in_transaction(
                    connection, statement, self._timeout, caller, self._role
                )
            if tenant != self.tenant or monotonic() > self._act_again_at:
                await self._act_for(connection, tenant)
            return await connection.fetch(statement.sql, *statement.args, timeout=self._timeout)
        except DRIVER_ERRORS as error:
            if is_lost(error):
                if not (self._keeps and isinstance(error, TimeoutError)):
                    self.drop()
                self._note_silence(error)
            raise translated(error, self._place()) from error
        except BaseException:
            self.drop()
            raise

    @property
    def connection(self) -> "asyncpg.Connection[Any] | None":
        """The connection, while it is open."""
        found = self._connection
        return None if found is None or found.is_closed() else found

    @property
    def waits(self) -> float | None:
        """Seconds since the statement in progress was sent; None if there is none."""
        return None if self._sent_at is None else perf_counter() - self._sent_at

    async def probe(self, timeout: float) -> bool:
        """Drop the connection if it is idle and does not answer; return False if it was dropped."""
        if self._lock.locked() or self.connection is None:
            return True
        async with self._lock:
            try:
                connection = await self._opened()
                await connection.fetch(load("server/answer"), timeout=timeout)
            except (*DRIVER_ERRORS, ForgeError):
                self.drop()
                return False
            except BaseException:
                self.drop()
                raise
        return True

    def _note_silence(self, error: BaseException) -> None:
        if isinstance(error, TimeoutError):
            self._was_silent = True
            self._on_silence()

    def _observe(self, statement: Statement[Any], seconds: float, error: ForgeError | None) -> None:
        for observer in self._observers:
            observer(statement, seconds, error)

    @asynccontextmanager
    async def lend(self) -> AsyncIterator["asyncpg.Connection[Any]"]:
        """Lend the connection for more than one statement."""
        async with self._lock:
            connection = await self._opened()
            try:
                if self.tenant is not None or monotonic() > self._act_again_at:
                    await self._act_for(connection, None)
                yield connection
            except asyncpg.PostgresError as error:
                raise translated(error, self._place()) from error
            except BROKEN as error:
                # The borrower's own code may have raised one of these.
                if connection.is_closed():
                    raise unavailable(error, self._place()) from error
                raise
            finally:
                if connection.is_closed() or connection.is_in_transaction():
                    self.drop()

    async def _act_for(self, connection: "asyncpg.Connection[Any]", tenant: int | None) -> None:
        try:
            if tenant != self.tenant or await self._is_bound(connection):
                await execute(connection, act(self._callers.tenant(tenant)), self._timeout)
        except BaseException:
            # The session may act for either tenant now, so no statement may run on it.
            self.drop()
            raise
        self.tenant = tenant
        self._act_again_at = monotonic() + self._callers.renew_after

    async def _is_bound(self, connection: "asyncpg.Connection[Any]") -> bool:
        if self._bound is None:
            found = await connection.fetchrow(standing().sql, timeout=self._timeout)
            self._bound = bool(found and found["is_bound"])
        return self._bound

    async def _is_secured(self, connection: "asyncpg.Connection[Any]") -> bool:
        if self._secured is None:
            self._secured = await is_secured(connection, self._timeout)
        return self._secured

    async def _opened(self) -> "asyncpg.Connection[Any]":
        connection = self._connection
        if connection is None or connection.is_closed():
            return await self._open()
        return connection

    async def _open(self) -> "asyncpg.Connection[Any]":
        try:
            self._act_again_at = monotonic() + self._callers.renew_after
            self._connection = await self._connect()
            self._secured = self._bound = self.tenant = None
        except DRIVER_ERRORS as error:
            self._note_silence(error)
            raise unavailable(error, self._place()) from error
        self.opened_at = monotonic()
        self._on_open()
        if self._was_silent:
            self._was_silent = False
            self._on_silence()
        return self._connection

    def drop(self) -> None:
        """End the connection at once: pending statements fail, the next use opens another."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await close_quietly(connection)


async def _fetch_in_transaction(
    connection: "asyncpg.Connection[Any]",
    statement: Statement[Any],
    timeout: float,
    caller: str,
    role: str | None,
) -> Any:
    """Run a statement behind a pooler."""
    async with asyncio.timeout(timeout), connection.transaction(isolation="read_committed"):
        await prepare_transaction(connection, caller, role)
        return await connection.fetch(statement.sql, *statement.args)


async def prepare_transaction(
    connection: "asyncpg.Connection[Any]", caller: str, role: str | None
) -> None:
    """Set what a session has elsewhere; behind a pooler it must be set in each transaction."""
    settings = {**PLANNER, SETTING: caller}
    await connection.execute(load("transaction/plan"), [*settings], [*settings.values()])
    if role is not None:
        await execute(connection, take_role(role, in_transaction=True))


async def close_quietly(connection: "asyncpg.Connection[Any]") -> None:
    """Close a connection that may be broken, without waiting for a dead server."""
    try:
        await connection.close(timeout=2)
    except DRIVER_ERRORS:
        connection.terminate()


def session_settings(pooler: bool, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the settings of a new session; behind a pooler there can be none."""
    return {} if pooler else {"application_name": "forge", **(extra or {})}
