"""The cost of an idle worker."""

import asyncio
from typing import NamedTuple

import psutil

from benchmarks.reference_table import connected, sql
from benchmarks.server import ThrowawayServer
from benchmarks.worker_process import worker_process
from forge.store.connection.database import Database
from forge.store.migrate import migrate

COUNTED = {"shared_preload_libraries": "pg_stat_statements"}


class Idle(NamedTuple):
    """Statements per second, and the memory of the process."""

    statements: float
    mebibytes: float


async def idle_cost(seconds: float) -> Idle:
    """Measure an idle worker with default settings on a server with pg_stat_statements."""
    async with ThrowawayServer(COUNTED) as dsn, connected(dsn, 1) as (connection,):
        database = Database(dsn)
        await migrate(database)
        await database.close()
        await connection.execute(sql("count_statements"))
        async with worker_process(dsn, slots=10, batch=10) as pid:
            await asyncio.sleep(5)
            before = await connection.fetchval(sql("statements"))
            await asyncio.sleep(seconds)
            after = await connection.fetchval(sql("statements"))
            memory = psutil.Process(pid).memory_info().rss
    return Idle((after - before) / seconds, memory / 2**20)
