"""What a worker costs that has nothing to do."""

import asyncio
from typing import NamedTuple

import psutil

from benchmarks.reference_table import connected, sql
from benchmarks.worker_process import worker_process


class Idle(NamedTuple):
    """Statements a second, and memory that is not shared with other processes."""

    statements: float
    mebibytes: float


async def idle_cost(dsn: str, seconds: float) -> Idle:
    """Watch an idle worker with the default settings for a while."""
    async with connected(dsn, 1) as (connection,):
        await connection.execute(sql("forge_empty"))
        async with worker_process(dsn, slots=10, batch=10) as pid:
            await asyncio.sleep(5)
            before = await connection.fetchval(sql("commits"))
            await asyncio.sleep(seconds)
            after = await connection.fetchval(sql("commits"))
            memory = psutil.Process(pid).memory_info().rss
    # Every statement of a worker is a transaction of its own; one of these is our own look.
    return Idle((after - before - 1) / seconds, memory / 2**20)
