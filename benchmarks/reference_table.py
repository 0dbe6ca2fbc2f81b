"""The reference table of the baseline: created for each measurement, dropped after it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

import asyncpg
from uuid_utils.compat import uuid7

TABLE = "limit_jobs"
JOB_TYPE = "send_email"
INPUT = '{"user_id": 42, "template": "welcome"}'
OUTPUT = '{"sent": true}'

# One plan whatever the table's size and statistics: walk the index, look each row up by its key.
# Left alone, a batch of 500 in a small table is joined by reading the whole table.
PLANNER = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Statement: TypeAlias = "asyncpg.prepared_stmt.PreparedStatement[asyncpg.Record]"
Row = tuple[UUID, str, str]


def sql(name: str, *, batch: int | None = None) -> str:
    """Return the statement of that name, with the batch size written into it."""
    text = (Path(__file__).parent / "sql" / f"{name}.sql").read_text()
    return text if batch is None else text.replace("LIMIT :batch", f"LIMIT {batch}")


@asynccontextmanager
async def reference_table(dsn: str) -> AsyncIterator[Connection]:
    """Create the empty table with its indexes, and drop it at the end."""
    async with connected(dsn, 1) as (connection,):
        await connection.execute(sql("drop_table"))
        with suppress(asyncpg.InsufficientPrivilegeError):
            await connection.execute(sql("checkpoint"))
        for statement in ("table", "pending_index", "owned_index", "idempotency_index"):
            await connection.execute(sql(f"create_{statement}"))
        try:
            yield connection
        finally:
            await connection.execute(sql("drop_table"))


@asynccontextmanager
async def connected(dsn: str, count: int) -> AsyncIterator[Sequence[Connection]]:
    """Open `count` connections for the duration of the block."""
    async with AsyncExitStack() as stack:
        connections: list[Connection] = []
        for _ in range(count):
            connection: Connection = await asyncpg.connect(dsn, server_settings=PLANNER)
            stack.push_async_callback(connection.close)
            connections.append(connection)
        yield connections


def new_rows(count: int) -> list[Row]:
    """Create rows to dispatch, with ids in time order."""
    return [(uuid7(), JOB_TYPE, INPUT) for _ in range(count)]


async def copy(connection: Connection, rows: Sequence[Row]) -> None:
    """Dispatch the rows with one COPY."""
    await connection.copy_records_to_table(TABLE, records=rows, columns=("id", "job_type", "input"))
