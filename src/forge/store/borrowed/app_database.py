"""A borrowed connection as the database of an app: all its statements run in one transaction."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NoReturn, TypeVar

from forge.core.errors import ForgeError, InvalidValue
from forge.store.borrowed import all_or_nothing, begin_part, end_part, run_on
from forge.store.borrowed.kinds import borrow
from forge.store.borrowed.threads import in_its_thread
from forge.store.connection.database import Database
from forge.store.connection.driver_errors import refused, state_of
from forge.store.connection.link import Link, LinkListeners, Observer, SessionOptions
from forge.store.connection.tenant import Callers
from forge.store.statement import Rows, Statement, rows

T = TypeVar("T")
# The name of no database: nothing connects to it.
NOWHERE = "postgresql://nowhere.invalid/borrowed"


class BorrowedLink(Link):
    """Runs each statement in a savepoint of a borrowed connection, one at a time."""

    def __init__(self, conn: Any, observers: Sequence[Observer] = ()) -> None:
        listeners = LinkListeners(observers, opened=_nothing, silence=_nothing)
        super().__init__(_refuse, lambda: "of conn=", SessionOptions(Callers()), listeners)
        self.conn = conn

    async def _fetch(self, statement: Statement[Any], tenant: int | None) -> Rows:
        async def act() -> Rows:
            async with all_or_nothing(self.conn):
                return await run_on(self.conn, Statement(statement.sql, statement.args, rows))

        try:
            return await in_its_thread(self.conn, act)
        except ForgeError:
            raise
        except Exception as error:
            if state_of(error):
                raise refused(error) from error
            raise

    async def begin_part(self) -> None:
        """Set a savepoint for what the caller does with the connection itself."""
        async with self._lock:
            await in_its_thread(self.conn, lambda: begin_part(self.conn))

    async def end_part(self) -> None:
        """Keep what was done since `begin_part`, or undo it if the transaction has failed."""
        async with self._lock:
            await in_its_thread(self.conn, lambda: end_part(self.conn))


class BorrowedDatabase(Database):
    """The database of an app whose statements all run on one borrowed connection."""

    def __init__(self, conn: Any, observers: list[Observer]) -> None:
        super().__init__(NOWHERE, observers=observers)
        self.borrowed_link = BorrowedLink(conn, observers)

    def link(self, *, timeout: float = 30, is_elsewhere: bool = False, keeps: bool = False) -> Link:
        return self.borrowed_link

    async def run(self, statement: Statement[T], tenant: int | None = None) -> T:
        return await self.borrowed_link.run(statement, tenant)

    def acquire(self) -> AbstractAsyncContextManager[Any]:
        return self.transaction()

    @asynccontextmanager
    async def transaction(self, tenant: int | None = None) -> AsyncIterator[Any]:
        async with all_or_nothing(self.borrowed_link.conn):
            yield await driver_of(self.borrowed_link.conn) or self.borrowed_link.conn

    async def users(self) -> Any:
        return BorrowedPool(self.borrowed_link.conn)


class BorrowedPool:
    """What `ctx.db` is on a borrowed connection: a pool of that connection alone."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    @asynccontextmanager
    async def acquire(self, *, timeout: float | None = None) -> AsyncIterator[Any]:
        yield await self._driver()

    async def release(self, connection: Any, *, timeout: float | None = None) -> None:
        """Do nothing: its owner closes it."""

    def __getattr__(self, name: str) -> Any:
        # The verbs of asyncpg's pool: execute, fetch, fetchrow …
        async def call(*args: Any, **options: Any) -> Any:
            return await getattr(await self._driver(), name)(*args, **options)

        return call

    async def _driver(self) -> Any:
        driver = await driver_of(self._conn)
        if driver is None:
            raise InvalidValue(
                f"ctx.db is a pool of asyncpg, and conn= is {type(self._conn).__qualname__}, which "
                "has no connection of asyncpg; test this job with run_all(app) without conn="
            )
        return driver


async def driver_of(conn: Any) -> Any:
    """Return the connection of asyncpg under a borrowed one, or None."""
    lender = borrow(conn)
    asyncpg_connection = getattr(lender, "asyncpg_connection", None)
    return None if asyncpg_connection is None else await asyncpg_connection()


async def _refuse() -> NoReturn:
    raise AssertionError("a borrowed connection is never opened")


def _nothing() -> None: ...
