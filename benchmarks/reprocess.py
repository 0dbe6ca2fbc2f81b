"""Dead letters reprocessed beside ordinary jobs: `python -m benchmarks.reprocess`."""

import asyncio
import sys
from statistics import median, quantiles
from time import perf_counter

import click
import uvloop

from benchmarks.bound import judged
from benchmarks.engine import app_on
from benchmarks.reference_table import connected, sql
from benchmarks.server import ThrowawayServer
from benchmarks.worker_process import worker_process
from forge import Forge


@click.command()
@click.option("--letters", default=100_000, show_default=True)
@click.option("--rate", default=1000.0, show_default=True)
def main(letters: int, rate: float) -> None:
    """Reprocess dead letters of no-op jobs while ordinary jobs come in, ten a second."""
    with ThrowawayServer() as dsn:
        held = uvloop.run(_measure(dsn, letters, rate))
    sys.exit(0 if held else 1)


async def _measure(dsn: str, letters: int, rate: float) -> bool:
    app = app_on(dsn)
    async with app, connected(dsn, 1) as (connection,):
        await app.migrate()
        await connection.execute(sql("fill_no_op_letters"), letters)
        async with worker_process(dsn, slots=100, batch=100):
            before = await _waits(app, 50)
            began = perf_counter()
            handle = await app.dead_letters.reprocess_many(rate=rate, canary=10)
            during = asyncio.create_task(_waits(app, int(5 * letters / rate)))
            report = await handle.result()
            took = perf_counter() - began
            waits = await during
        left = await connection.fetchval(sql("count_unreviewed"))
    click.echo(f"     {report} in {took:.1f} s")
    reached = report["reprocessed"] / took
    alone, beside = median(before), median(waits)
    return all(
        [
            judged("reprocessed a second, of what was asked", reached / rate, "≥ 0.95"),
            judged("letters left", left, "≤ 0"),
            judged("ordinary job beside, of one alone: p50", beside / alone, "≤ 1.5", _ms(waits)),
        ]
    )


async def _waits(app: Forge, count: int) -> list[float]:
    """Return how long ordinary jobs take from dispatch to their result."""
    found = []
    for _ in range(count):
        began = perf_counter()
        await (await app.dispatch("no_op", {})).result(60)
        found.append((perf_counter() - began) * 1000)
        await asyncio.sleep(0.1)
    return found


def _ms(waits: list[float]) -> str:
    cuts = quantiles(waits, n=100)
    return f"p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms"


if __name__ == "__main__":
    main()
