"""Connections and sessions of SQLAlchemy, on asyncpg or psycopg 3."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.util import await_only

from forge.core.errors import DatabaseUnavailable, InvalidValue
from forge.store.borrowed.kinds import borrow as borrow_any
from forge.store.borrowed.lender import Lender, closed_connection
from forge.store.bulk_copy import CopyData
from forge.store.statement import Rows, load

T = TypeVar("T")
Sync = Connection | Session
Async = AsyncConnection | AsyncSession


def borrow(conn: Any) -> Lender | None:
    if isinstance(conn, scoped_session | async_scoped_session):
        conn = conn()
    return FromSqlalchemy(conn) if isinstance(conn, Sync | Async) else None


class FromSqlalchemy:
    """Runs statements on the driver's connection, after SQLAlchemy has begun its transaction."""

    def __init__(self, conn: Sync | Async) -> None:
        self._conn = conn
        self.waits = isinstance(conn, Async)

    async def fetch(self, sql: str, args: Sequence[Any]) -> Rows:
        return await self._lend(lambda lender: lender.fetch(sql, args))

    async def copy(self, copy: CopyData) -> int:
        return await self._lend(lambda lender: lender.copy(copy))

    async def asyncpg_connection(self) -> Any:
        """Return the driver's connection if it is one of asyncpg."""
        lender = await self._do(_lender_of)
        connection = getattr(lender, "asyncpg_connection", None)
        return None if connection is None else await connection()

    async def _lend(self, use: Callable[[Lender], Coroutine[Any, Any, T]]) -> T:
        lender = await self._do(_lender_of)
        try:
            # A sync connection has an async driver only inside AsyncSession.run_sync.
            is_inside = lender.waits and not self.waits
            return await_only(use(lender)) if is_inside else await use(lender)
        except DatabaseUnavailable:
            await self._do(_invalidate)
            raise

    async def _do(self, act: Callable[[Sync], T]) -> T:
        if isinstance(self._conn, Sync):
            return act(self._conn)
        if isinstance(self._conn, AsyncConnection) and self._conn.closed:
            raise closed_connection()
        return await self._conn.run_sync(act)


def _lender_of(conn: Sync) -> Lender:
    """Return the lender for the driver's own connection, inside SQLAlchemy's transaction."""
    connection = _connection_of(conn)
    if connection.closed or connection.invalidated:
        raise closed_connection()
    # SQLAlchemy commits only transactions it began itself, and begins one with the first statement
    # it executes; on asyncpg even an explicit begin() is deferred until then.
    if not (connection.in_transaction() and _driver_began(connection)):
        connection.exec_driver_sql(load("transaction/begin"))
    return _driver_lender(connection)


def _connection_of(conn: Sync) -> Connection:
    return conn.connection() if isinstance(conn, Session) else conn


def _invalidate(conn: Sync) -> None:
    """Tell SQLAlchemy that the connection is lost, because its own rollback would fail."""
    _connection_of(conn).invalidate()


def _driver_began(connection: Connection) -> bool:
    is_in_transaction = getattr(connection.connection.driver_connection, "is_in_transaction", None)
    return is_in_transaction is None or bool(is_in_transaction())


def _driver_lender(connection: Connection) -> Lender:
    try:
        return borrow_any(connection.connection.driver_connection)
    except InvalidValue:
        raise InvalidValue(
            f"conn= does not accept SQLAlchemy on {connection.dialect.driver}; create the engine "
            "with postgresql+psycopg://… or postgresql+asyncpg://…"
        ) from None
