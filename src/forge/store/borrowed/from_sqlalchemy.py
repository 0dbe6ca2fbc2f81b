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
from forge.store.bulk import Copy
from forge.store.statement import Rows

T = TypeVar("T")


def borrow(conn: Any) -> Lender | None:
    if isinstance(conn, scoped_session | async_scoped_session):
        conn = conn()
    if isinstance(conn, Connection | Session):
        return FromSqlalchemy(conn)
    if isinstance(conn, AsyncConnection | AsyncSession):
        return FromAsyncSqlalchemy(conn)
    return None


class FromSqlalchemy:
    """Runs statements on the driver's connection, after SQLAlchemy has begun its transaction."""

    waits = False

    def __init__(self, conn: Connection | Session) -> None:
        self._conn = conn

    async def fetch(self, sql: str, args: Sequence[Any]) -> Rows:
        return await self._lend(lambda lender: lender.fetch(sql, args))

    async def copy(self, copy: Copy) -> int:
        return await self._lend(lambda lender: lender.copy(copy))

    async def _lend(self, use: Callable[[Lender], Coroutine[Any, Any, T]]) -> T:
        lender = _lender_of(self._conn)
        try:
            # A driver with a loop is met here only inside AsyncSession.run_sync.
            return await_only(use(lender)) if lender.waits else await use(lender)
        except DatabaseUnavailable:
            _invalidate(self._conn)
            raise


class FromAsyncSqlalchemy:
    """The same, awaited."""

    waits = True

    def __init__(self, conn: AsyncConnection | AsyncSession) -> None:
        self._conn = conn

    async def fetch(self, sql: str, args: Sequence[Any]) -> Rows:
        return await self._lend(lambda lender: lender.fetch(sql, args))

    async def copy(self, copy: Copy) -> int:
        return await self._lend(lambda lender: lender.copy(copy))

    async def _lend(self, use: Callable[[Lender], Coroutine[Any, Any, T]]) -> T:
        if isinstance(self._conn, AsyncConnection) and self._conn.closed:
            raise closed_connection()
        lender = await self._conn.run_sync(_lender_of)
        try:
            return await use(lender)
        except DatabaseUnavailable:
            await self._conn.run_sync(_invalidate)
            raise


def _lender_of(conn: Connection | Session) -> Lender:
    """Return the lender for the driver's own connection, inside SQLAlchemy's transaction."""
    connection = _connection_of(conn)
    if connection.closed or connection.invalidated:
        raise closed_connection()
    # SQLAlchemy commits only what it began itself, and begins with the first statement it sees;
    # on asyncpg even an explicit begin() waits for that.
    if not (connection.in_transaction() and _driver_began(connection)):
        connection.exec_driver_sql("select 1")
    return _driver_lender(connection)


def _connection_of(conn: Connection | Session) -> Connection:
    return conn.connection() if isinstance(conn, Session) else conn


def _invalidate(conn: Connection | Session) -> None:
    """Let SQLAlchemy know what it did not see: its own rollback would fail on a lost connection."""
    _connection_of(conn).invalidate()


def _driver_began(connection: Connection) -> bool:
    asks_itself = getattr(connection.connection.driver_connection, "is_in_transaction", None)
    return asks_itself is None or bool(asks_itself())


def _driver_lender(connection: Connection) -> Lender:
    try:
        return borrow_any(connection.connection.driver_connection)
    except InvalidValue:
        raise InvalidValue(
            f"conn= does not take SQLAlchemy on {connection.dialect.driver}; make the engine with "
            "postgresql+psycopg://… or postgresql+asyncpg://…"
        ) from None
