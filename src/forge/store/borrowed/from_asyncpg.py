"""Connections of asyncpg and of its pool."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from forge.store.borrowed.lender import closed_connection, explained, no_transaction
from forge.store.bulk_copy import CopyData
from forge.store.statement import Rows, load

# The names of JSON in the rows that an app reads.
JSON_COLUMNS = {"input", "output", "auth", "checkpoint", "meta", "payload", "recent_runs"}
JSON_COLUMNS |= {"input_schema", "output_schema"}


def borrow(conn: Any) -> "FromAsyncpg | None":
    return FromAsyncpg(conn) if isinstance(conn, asyncpg.Connection | PoolConnectionProxy) else None


class FromAsyncpg:
    """Runs statements in the transaction that `conn.transaction()` began."""

    waits = True

    def __init__(self, conn: "asyncpg.Connection[Any]") -> None:
        self._conn = conn

    async def fetch(self, sql: str, args: Sequence[Any]) -> Rows:
        with self._in_transaction():
            found: Rows = await self._conn.fetch(sql, *args)
            if found and not JSON_COLUMNS.isdisjoint(found[0].keys()):
                found = await self._with_json_as_text(found)
        return found

    async def _with_json_as_text(self, found: Rows) -> Rows:
        """Return rows as Forge reads them, also where a codec of the caller has decoded JSON."""
        if await self._conn.fetchval(load("transaction/read_json")) != "x":
            return found
        return [
            {
                name: json.dumps(value) if name in JSON_COLUMNS and value is not None else value
                for name, value in row.items()
            }
            for row in found
        ]

    async def copy(self, copy: CopyData) -> int:
        source = _Source(copy.blocks)
        try:
            with self._in_transaction():
                return await copy_blocks(self._conn, copy.columns, source.blocks())
        except Exception:
            # asyncpg cancels the COPY when its source fails, and raises that instead of the cause.
            if source.error is not None:
                raise source.error from None
            raise

    async def asyncpg_connection(self) -> "asyncpg.Connection[Any]":
        return self._conn

    @contextmanager
    def _in_transaction(self) -> Iterator[None]:
        if self._is_closed():
            raise closed_connection()
        if not self._conn.is_in_transaction():
            raise no_transaction("`async with conn.transaction():`")
        with explained(self._is_closed):
            yield

    def _is_closed(self) -> bool:
        try:
            return bool(self._conn.is_closed())
        except asyncpg.InterfaceError:
            return True  # it was released to its pool


async def copy_blocks(
    conn: "asyncpg.Connection[Any]", columns: Sequence[str], blocks: AsyncIterator[bytes]
) -> int:
    """Copy blocks of rows into forge_jobs."""
    status = await conn.copy_to_table("forge_jobs", source=blocks, columns=columns, format="binary")
    return int(status.split()[-1])


class _Source:
    """The caller's rows, and the error that their iterator raised, if any."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self.error: Exception | None = None

    async def blocks(self) -> AsyncIterator[bytes]:
        try:
            for block in self._blocks:
                yield block
        except Exception as error:
            self.error = error
            raise
