"""`python -m benchmarks.schedules`: many due schedules on one worker, and the cost of claims."""

import asyncio
import sys
from typing import Any

import asyncpg
import click
import uvloop

from benchmarks.bound import judged
from benchmarks.claim_cost import BATCH, WORKER, Cost, cost_of
from benchmarks.reference_table import connected, sql
from benchmarks.server import ThrowawayServer
from benchmarks.worker_process import worker_process
from forge import Config, Forge
from forge.config.settings import DatabaseConfig
from forge.core.workers.lanes import BEGINNING
from forge.store import schedules
from forge.store.jobs import LaneCursor

FEW = 1_000
APP = "benchmarks.schedules_app:app"


@click.command()
@click.option("--due", default=100_000, show_default=True)
def main(due: int) -> None:
    """Measure; exit with 1 if the cost of claims grows or the due runs take more than a minute."""
    with ThrowawayServer() as dsn:
        held = uvloop.run(_measure(dsn, due))
    sys.exit(0 if held else 1)


async def _measure(dsn: str, due: int) -> bool:
    async with Forge(Config(database=DatabaseConfig(url=dsn))) as app:
        await app.migrate()
    few, many = await claim_cost(dsn, FEW), await claim_cost(dsn, due)
    held = [
        judged(
            f"survey and claim of {BATCH}, {due:,} due against {FEW:,}: {part}",
            more / less,
            "≤ 1.3",
            f"{more:,.2f} of {less:,.2f}",
        )
        for part, less, more in zip(Cost._fields, few, many, strict=True)
    ]
    for slots in (10, 100):
        rate = await run_all(dsn, due, slots=slots, batch=slots)
        name = f"{due:,} due on one worker, {slots} slots: seconds"
        held.append(judged(name, due / rate, "≤ 60", f"{rate:,.0f} runs per second"))
    return all(held)


async def run_all(dsn: str, due: int, *, slots: int, batch: int) -> float:
    """Return the runs per second of one worker with `due` due schedules."""
    async with connected(dsn, 1) as (connection,):
        await _fill(connection, due)
        async with worker_process(dsn, slots=slots, batch=batch, app=APP):
            while await connection.fetchval(sql("schedules_due")):  # noqa: ASYNC110
                await asyncio.sleep(0.5)
        span = await connection.fetchrow(sql("schedules_span"))
    if span["runs"] != due:
        raise RuntimeError(f"{span['runs']} of {due} schedules ran, so the figure is invalid")
    return float(due / span["seconds"])


async def claim_cost(dsn: str, due: int) -> Cost:
    """Return the cost of one survey and one claim with `due` due schedules."""
    async with connected(dsn, 1) as (connection,):
        await _fill(connection, due)
        await connection.execute(sql("forge_register"), WORKER)
        survey = schedules.survey()
        (lane,) = survey.read(await connection.fetch(survey.sql))
        place = LaneCursor(lane.lane, *BEGINNING)
        claim = schedules.claim(
            [place], BATCH, worker=WORKER, incarnation=WORKER, rules={}, lanes=[lane]
        )
        return await cost_of(connection, (survey, claim))


async def _fill(connection: "asyncpg.Connection[Any]", due: int) -> None:
    await connection.execute(sql("schedules_empty"))
    await connection.execute(sql("schedules_fill"), due)
    await connection.execute("vacuum analyze forge_schedules")
    await connection.execute(sql("checkpoint"))


if __name__ == "__main__":
    main()
