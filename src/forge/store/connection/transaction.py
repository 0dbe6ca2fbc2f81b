"""One transaction for a mutation: committed as a whole, or rolled back however it ends."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import asyncpg

from forge.core.errors import ForgeError
from forge.core.sqlstate import Blame
from forge.store.connection.database import Database
from forge.store.connection.driver_errors import (
    BROKEN,
    DRIVER_ERRORS,
    blame,
    is_busy,
    is_lost,
    refused,
    unavailable,
)
from forge.store.connection.tenant import act_in_transaction, execute
from forge.store.statement import Statement, load, nothing

Isolation = Literal["read_committed", "repeatable_read", "serializable"]
ISOLATIONS: tuple[Isolation, ...] = ("read_committed", "repeatable_read", "serializable")

# Seconds to wait for a server that may be gone.
ROLLBACK_TIMEOUT = 2
COMMIT_TIMEOUT = 30


@asynccontextmanager
async def transaction(
    database: Database,
    isolation: Isolation,
    tenant: int | None = None,
    auth: Mapping[str, Any] | None = None,
) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """Open a transaction that acts for a caller, on a connection of the handlers' pool."""
    caller = database.callers.bound(tenant, auth)
    # A login that does not have to name a caller acts for an operator anyway.
    acts = tenant is not None or await database.is_bound()
    pool = await database.users()
    try:
        conn = await pool.acquire(timeout=database.connect_timeout)
    except DRIVER_ERRORS as error:
        raise unavailable(error, database.place) from error
    try:
        async with _atomic(conn, isolation, database):
            if acts:
                await execute(conn, act_in_transaction(caller), COMMIT_TIMEOUT)
            yield conn
    except ForgeError:
        raise
    except asyncpg.PostgresError as error:
        if blame(error) in (Blame.PLATFORM, Blame.PLATFORM_IF_READ_ONLY):
            raise unavailable(error, database.place) from error
        raise
    except BROKEN as error:
        # The mutation's own code may have raised one of these.
        if _is_closed(conn):
            raise unavailable(error, database.place) from error
        raise
    finally:
        await pool.release(conn, timeout=ROLLBACK_TIMEOUT)


def busy(error: Exception) -> Exception:
    """Return DatabaseUnavailable for an error that a retry may avoid, else the error itself."""
    return refused(error) if is_busy(error) else error


@asynccontextmanager
async def _atomic(conn: Any, isolation: Isolation, database: Database) -> AsyncIterator[None]:
    began = conn.transaction(isolation=isolation)
    await began.start()
    try:
        yield
        await _check(conn)
    except BaseException:
        await _uninterrupted(_undo(began, conn, database))
        raise
    try:
        async with asyncio.timeout(COMMIT_TIMEOUT):
            await began.commit()
    except DRIVER_ERRORS as error:
        if is_lost(error):
            _end(conn)
        raise


async def _check(conn: Any) -> None:
    try:
        await conn.execute(load("transaction/check"), timeout=COMMIT_TIMEOUT)
    except asyncpg.InFailedSQLTransactionError as error:
        raise ForgeError(
            "a statement of the mutation failed and its error was caught, so nothing can be "
            "committed; wrap statements that may fail in `async with ctx.db.transaction():`"
        ) from error


async def _undo(began: Any, conn: Any, database: Database) -> None:
    if _is_closed(conn):
        return
    session = conn.get_server_pid()
    try:
        async with asyncio.timeout(ROLLBACK_TIMEOUT):
            await began.rollback()
    except DRIVER_ERRORS:
        _end(conn)
        # Behind a pooler the id is not that of the session.
        if not database.pooler:
            with suppress(ForgeError):
                await database.run(Statement(load("transaction/end"), (session,), nothing))


async def _uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Wait for work to end, even if the waiting task is cancelled again."""
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
        return True  # the pool has released the lost connection


def _end(conn: Any) -> None:
    if not _is_closed(conn):
        conn.terminate()
