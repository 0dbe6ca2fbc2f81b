"""One connection that comes back: opened when first needed, dropped when it fails."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from time import monotonic, perf_counter
from typing import Any, TypeVar

import asyncpg

from forge.core.errors import ForgeError
from forge.store.fault import BROKEN, DRIVER_ERRORS, is_lost, translated, unavailable
from forge.store.secured import as_secured, is_secured, secured_text
from forge.store.statement import Statement, load
from forge.store.tenant import SETTING, Callers, act, execute, standing, take_role

T = TypeVar("T")
# Told of each statement how many seconds it took, and what it failed with if it did.
Observer = Callable[[Statement[Any], float, ForgeError | None], None]

# Forge's statements are written for one plan each, by index. A planner that met the tables while
# they were empty, or estimates a list badly, would rather read all of a table that has since grown.
PLANNER = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}
# Its statements expect to see what others committed before each of them, whatever the default is.
SESSION = {**PLANNER, "default_transaction_isolation": "read committed"}


class Link:
    """A connection for one purpose, used by one statement at a time."""

    def __init__(
        self,
        connect: Callable[[], Awaitable["asyncpg.Connection[Any]"]],
        *,
        place: Callable[[], str],
        callers: Callers,
        role: str | None = None,
        pooler: bool = False,
        timeout: float = 30,
        observers: Sequence[Observer] = (),
        opened: Callable[[], None] = lambda: None,
        silence: Callable[[], None] = lambda: None,
        keeps: bool = False,
    ) -> None:
        self._connect = connect
        self._place = place
        # Called when it has connected, and when the server did not answer, or does so again.
        self._on_open = opened
        self._on_silence = silence
        self._was_silent = False
        # Whether a statement that took too long leaves the connection open.
        self._keeps = keeps and not pooler
        self._sent_at: float | None = None
        self.opened_at = 0.0
        self._callers = callers
        # Behind a pooler it is taken for each transaction, else when the session is opened.
        self._role = role
        self._observers = observers
        self._pooler = pooler
        self._timeout = timeout
        self._connection: asyncpg.Connection[Any] | None = None
        self._secured: bool | None = None
        self._bound: bool | None = None
        # The tenant that the session acts for; None is an operator, as when it was opened.
        self.tenant: int | None = None
        self._act_again_at = 0.0
        self._lock = asyncio.Lock()

    async def run(self, statement: Statement[T], tenant: int | None = None) -> T:
        """Run one statement in a transaction of its own, for a tenant or for an operator."""
        async with self._lock:
            began = self._sent_at = perf_counter()
            try:
                found = await self._fetch(statement, tenant)
            except ForgeError as error:
                self._tell(statement, perf_counter() - began, error)
                raise
            finally:
                self._sent_at = None
            self._tell(statement, perf_counter() - began, None)
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
        """For how many seconds a statement has been under way."""
        return None if self._sent_at is None else perf_counter() - self._sent_at

    async def prove(self, patience: float) -> bool:
        """Drop the connection if it is idle and does not answer; say whether there was no need."""
        if self._lock.locked() or self.connection is None:
            return True
        async with self._lock:
            try:
                connection = await self._opened()
                await connection.fetch(load("server/answer"), timeout=patience)
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

    def _tell(self, statement: Statement[Any], seconds: float, error: ForgeError | None) -> None:
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
                # The borrower may have raised one of these on its own account.
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
            # For whom it acts is not known, and no statement may run to find out.
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
        """End the connection at once: whatever waits for it fails, the next use opens another."""
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
    """Run a statement where a pooler forbids to set the planner and the caller for the session."""
    settings = {**PLANNER, SETTING: caller}
    async with asyncio.timeout(timeout), connection.transaction(isolation="read_committed"):
        await connection.execute(load("transaction/plan"), [*settings], [*settings.values()])
        if role is not None:
            await execute(connection, take_role(role, in_transaction=True))
        return await connection.fetch(statement.sql, *statement.args)


async def close_quietly(connection: "asyncpg.Connection[Any]") -> None:
    """Close a connection that may be broken already, without waiting for a dead server."""
    try:
        await connection.close(timeout=2)
    except DRIVER_ERRORS:
        connection.terminate()


def session_settings(pooler: bool, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what to set when a connection opens; behind a pooler nothing may be."""
    return {} if pooler else {"application_name": "forge", **(extra or {})}
