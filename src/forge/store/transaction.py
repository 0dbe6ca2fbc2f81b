"""One transaction for a mutation: committed whole, or rolled back whatever ends it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import asyncpg

from forge.core.errors import ForgeError
from forge.core.sqlstate import Blame
from forge.store.database import Database
from forge.store.fault import BROKEN, DRIVER_ERRORS, blame, is_busy, is_lost, refused, unavailable
from forge.store.statement import Statement, load, nothing
from forge.store.tenant import act_in_transaction, execute

Isolation = Literal["read_committed", "repeatable_read", "serializable"]
ISOLATIONS: tuple[Isolation, ...] = ("read_committed", "repeatable_read", "serializable")

# How long a server that may be gone is waited for, in seconds.
FOR_ROLLBACK = 2
FOR_COMMIT = 30


@asynccontextmanager
async def transaction(
    database: Database,
    isolation: Isolation,
    tenant: int | None = None,
    auth: Mapping[str, Any] | None = None,
) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """Hold a connection of the handlers' pool and a transaction on it that acts for a caller."""
    caller = database.callers.bound(tenant, auth)
    # A login that need not name a caller acts for an operator anyway.
    acts = tenant is not None or await database.is_bound()
    pool = await database.users()
    try:
        conn = await pool.acquire(timeout=database.connect_timeout)
    except DRIVER_ERRORS as error:
        raise unavailable(error, database.place) from error
    try:
        async with _whole(conn, isolation, database):
            if acts:
                await execute(conn, act_in_transaction(caller), FOR_COMMIT)
            yield conn
    except ForgeError:
        raise
    except asyncpg.PostgresError as error:
        if blame(error) in (Blame.PLATFORM, Blame.PLATFORM_IF_READ_ONLY):
            raise unavailable(error, database.place) from error
        raise
    except BROKEN as error:
        # The borrower may have raised one of these on its own account.
        if _is_closed(conn):
            raise unavailable(error, database.place) from error
        raise
    finally:
        await pool.release(conn, timeout=FOR_ROLLBACK)


def busy(error: Exception) -> Exception:
    """Return what the caller is to be told of an error that another time may not bring."""
    return refused(error) if is_busy(error) else error


@asynccontextmanager
async def _whole(conn: Any, isolation: Isolation, database: Database) -> AsyncIterator[None]:
    began = conn.transaction(isolation=isolation)
    await began.start()
    try:
        yield
        await _check(conn)
    except BaseException:
        await _surely(_undo(began, conn, database))
        raise
    try:
        async with asyncio.timeout(FOR_COMMIT):
            await began.commit()
    except DRIVER_ERRORS as error:
        if is_lost(error):
            _end(conn)
        raise


async def _check(conn: Any) -> None:
    try:
        await conn.execute(load("transaction/check"), timeout=FOR_COMMIT)
    except asyncpg.InFailedSQLTransactionError as error:
        raise ForgeError(
            "a statement of the mutation failed and its error was caught, so that nothing can be "
            "committed; wrap what may fail in `async with ctx.db.transaction():`"
        ) from error


async def _undo(began: Any, conn: Any, database: Database) -> None:
    if _is_closed(conn):
        return
    session = conn.get_server_pid()
    try:
        async with asyncio.timeout(FOR_ROLLBACK):
            await began.rollback()
    except DRIVER_ERRORS:
        _end(conn)
        # Behind a pooler the id is not that of the session.
        if not database.pooler:
            with suppress(ForgeError):
                await database.run(Statement(load("transaction/end"), (session,), nothing))


async def _surely(work: Coroutine[Any, Any, None]) -> None:
    """Wait for the end of what has to be done, though whoever waits is cancelled once more."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as again:
            cancelled = again
    task.result()
    if cancelled is not None:
        raise cancelled


def _is_closed(conn: Any) -> bool:
    try:
        return bool(conn.is_closed())
    except asyncpg.InterfaceError:
        return True  # its pool has taken back what was lost


def _end(conn: Any) -> None:
    if not _is_closed(conn):
        conn.terminate()
