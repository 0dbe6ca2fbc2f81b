"""Connections of psycopg 3, sync and async."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.abc import AdaptContext
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row
from psycopg.types.string import TextLoader

from forge.store.borrowed.lender import COPY, Lender, closed_connection, explained, no_transaction
from forge.store.bulk_copy import CopyData
from forge.store.statement import Rows


def borrow(conn: Any) -> Lender | None:
    if isinstance(conn, psycopg.Connection):
        return FromPsycopg(conn)
    if isinstance(conn, psycopg.AsyncConnection):
        return FromAsyncPsycopg(conn)
    return None


class FromPsycopg:
    """Runs statements in the implicit transaction of psycopg, or in `conn.transaction()`."""

    waits = False

    def __init__(self, conn: "psycopg.Connection[Any]") -> None:
        self._conn = conn

    async def fetch(self, sql: str, args: Sequence[Any]) -> Rows:
        with (
            _in_transaction(self._conn),
            psycopg.RawCursor(self._conn, row_factory=dict_row) as cursor,
        ):
            _read_json_as_text(cursor)
            cursor.execute(sql.encode(), args or None)
            return cursor.fetchall() if cursor.description else []

    async def copy(self, copy: CopyData) -> int:
        with _in_transaction(self._conn), psycopg.RawCursor(self._conn) as cursor:
            with cursor.copy(_copy(copy)) as lines:
                for block in copy.blocks:
                    lines.write(block)
            return cursor.rowcount


class FromAsyncPsycopg:
    """The async version of FromPsycopg."""

    waits = True

    def __init__(self, conn: "psycopg.AsyncConnection[Any]") -> None:
        self._conn = conn

    async def fetch(self, sql: str, args: Sequence[Any]) -> Rows:
        with _in_transaction(self._conn):
            async with psycopg.AsyncRawCursor(self._conn, row_factory=dict_row) as cursor:
                _read_json_as_text(cursor)
                await cursor.execute(sql.encode(), args or None)
                return await cursor.fetchall() if cursor.description else []

    async def copy(self, copy: CopyData) -> int:
        with _in_transaction(self._conn):
            async with psycopg.AsyncRawCursor(self._conn) as cursor:
                async with cursor.copy(_copy(copy)) as lines:
                    for block in copy.blocks:
                        await lines.write(block)
                return cursor.rowcount


@contextmanager
def _in_transaction(
    conn: "psycopg.Connection[Any] | psycopg.AsyncConnection[Any]",
) -> Iterator[None]:
    if conn.closed:
        raise closed_connection()
    if conn.autocommit and conn.info.transaction_status is TransactionStatus.IDLE:
        raise no_transaction("`with conn.transaction():`")
    with explained(lambda: conn.closed):
        yield


def _copy(copy: CopyData) -> bytes:
    return COPY.format(columns=", ".join(copy.columns)).encode()


def _read_json_as_text(cursor: AdaptContext) -> None:
    """Read JSON as the other drivers do: the store decodes it itself."""
    for name in ("json", "jsonb"):
        cursor.adapters.register_loader(name, TextLoader)
