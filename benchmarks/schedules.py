"""`python -m benchmarks.schedules`: many schedules due at once on one worker, and flat claims."""

import asyncio
import json
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from benchmarks.reference_table import connected, sql
from benchmarks.server import ThrowawayServer
from benchmarks.worker_process import worker_process
from forge import Config, Forge
from forge.config import DatabaseConfig
from forge.core.lanes import BEGINNING
from forge.store import schedules
from forge.store.jobs import Place
from forge.store.statement import Statement

WORKER = UUID(int=7)
DUE = 100_000
FEW = 1_000
BATCH = 10
TRIES = 40
APP = "benchmarks.schedules_app:app"


class Cost(NamedTuple):
    """What looking for due schedules and claiming a batch of them costs."""

    milliseconds: float
    buffers: int


async def run_all(dsn: str, due: int, *, slots: int, batch: int) -> float:
    """Return the runs per second of one worker that finds so many schedules due."""
    async with connected(dsn, 1) as (connection,):
        await _fill(connection, due)
        async with worker_process(dsn, slots=slots, batch=batch, app=APP):
            while await connection.fetchval(sql("schedules_due")):  # noqa: ASYNC110
                await asyncio.sleep(0.5)
        span = await connection.fetchrow(sql("schedules_span"))
    if span["runs"] != due:
        raise RuntimeError(f"{span['runs']} of {due} schedules ran, so the figure is void")
    return float(due / span["seconds"])


async def claim_cost(dsn: str, due: int) -> Cost:
    """Return the cost of one survey and one claim with so many schedules due."""
    async with connected(dsn, 1) as (connection,):
        await _fill(connection, due)
        await connection.execute(sql("forge_register"), WORKER)
        survey = schedules.survey()
        (lane,) = survey.read(await connection.fetch(survey.sql))
        place = Place(lane.lane, *BEGINNING)
        claim = schedules.claim([place], BATCH, worker=WORKER, incarnation=WORKER, rules={})
        seconds = [await _timed(connection, (survey, claim)) for _ in range(TRIES)]
        buffers = [await _buffers(connection, statement) for statement in (survey, claim)]
    return Cost(median(seconds[TRIES // 4 :]) * 1000, sum(buffers))


async def _fill(connection: "asyncpg.Connection[Any]", due: int) -> None:
    await connection.execute(sql("schedules_empty"))
    await connection.execute(sql("schedules_fill"), due)
    await connection.execute("vacuum analyze forge_schedules")
    await connection.execute(sql("checkpoint"))


async def _timed(
    connection: "asyncpg.Connection[Any]", statements: tuple[Statement[Any], ...]
) -> float:
    transaction = connection.transaction()
    await transaction.start()
    try:
        started = perf_counter()
        for statement in statements:
            found = await connection.fetch(statement.sql, *statement.args)
        took = perf_counter() - started
    finally:
        await transaction.rollback()
    if len(found) != BATCH:
        raise RuntimeError(f"{len(found)} schedules were claimed instead of {BATCH}")
    return took


async def _buffers(connection: "asyncpg.Connection[Any]", statement: Statement[Any]) -> int:
    transaction = connection.transaction()
    await transaction.start()
    try:
        explained = await connection.fetchval(
            f"explain (analyze, buffers, format json) {statement.sql}", *statement.args
        )
    finally:
        await transaction.rollback()
    plan = json.loads(explained)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


async def main() -> None:
    async with ThrowawayServer() as dsn:
        async with Forge(Config(database=DatabaseConfig(url=dsn))) as app:
            await app.migrate()
        for due in (FEW, DUE):
            cost = await claim_cost(dsn, due)
            print(
                f"{due:>7,} due: a survey and a claim of {BATCH} take {cost.milliseconds:.2f} ms ",
                end="",
            )
            print(f"and {cost.buffers} buffers")
        for slots, batch in ((10, 10), (100, 100)):
            rate = await run_all(dsn, DUE, slots=slots, batch=batch)
            print(
                f"{DUE:>7,} due on one worker, {slots} slots: {rate:,.0f} runs a second, ", end=""
            )
            print(f"all in {DUE / rate:.0f} s")


if __name__ == "__main__":
    asyncio.run(main())
