"""Reprocessing dead letters next to ordinary jobs, with a worker killed half-way.

`python -m benchmarks.reprocess`
"""

import asyncio
import os
import signal
import sys
from statistics import median, quantiles
from time import perf_counter

import click
import uvloop

from benchmarks.bound import judged
from benchmarks.engine import app_on
from benchmarks.reference_table import connected, sql
from benchmarks.server import ThrowawayServer
from benchmarks.worker_process import drained, worker_process
from forge import Forge, JobHandle


@click.command()
@click.option("--letters", default=100_000, show_default=True)
@click.option("--rate", default=1000.0, show_default=True)
def main(letters: int, rate: float) -> None:
    """Reprocess dead letters of no-op jobs while ordinary jobs arrive, ten per second.

    Half-way, the worker is killed in the middle of a slice, and another worker continues.
    """
    with ThrowawayServer() as dsn:
        held = uvloop.run(_measure(dsn, letters, rate))
    sys.exit(0 if held else 1)


async def _measure(dsn: str, letters: int, rate: float) -> bool:
    app = app_on(dsn)
    async with app, connected(dsn, 1) as (connection,):
        await app.migrate()
        await connection.execute(sql("fill_no_op_letters"), letters)
        async with worker_process(dsn, slots=100, batch=100, ends_with=-signal.SIGKILL) as worker:
            alone = await _waits(app, 100)
            began = perf_counter()
            handle = await app.dead_letters.reprocess_many(rate=rate, canary=10)
            meanwhile = await _waits(app, int(3.5 * letters / rate))
            await _kill_during_slice(app, handle, worker)
        killed = perf_counter()
        half = (await app.get(handle.id)).progress_percent
        async with worker_process(dsn, slots=100, batch=100):
            await _until_continued(app, handle)
            away = perf_counter() - killed  # time without a worker does not count
            report = await handle.result()
            took = perf_counter() - began - away
            await drained(connection)
        left = await connection.fetchval(sql("count_unreviewed"))
        made = await connection.fetchrow(sql("reprocessed_jobs"))
    click.echo(f"     killed at {half} %; {report} in {took:.1f} s")
    detail = f"{_summary(meanwhile)}; alone {_summary(alone)}"
    return all(
        [
            judged(
                "reprocessed per second, of the requested rate", letters / took / rate, "≥ 0.95"
            ),
            judged("dead letters left", left, "≤ 0"),
            judged("new jobs per dead letter", made["made"] / letters, "≤ 1"),
            judged("completed jobs per dead letter", made["completed"] / letters, "≥ 1"),
            judged(
                "ordinary job meanwhile, p50, of p50 alone",
                median(meanwhile) / median(alone),
                "≤ 1.5",
                detail,
            ),
            judged(
                "ordinary job meanwhile, p99, of p50 alone", _p99(meanwhile) / median(alone), "≤ 4"
            ),
        ]
    )


async def _kill_during_slice(app: Forge, handle: JobHandle, worker: int) -> None:
    while (await app.get(handle.id)).status != "running":  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    os.kill(worker, signal.SIGKILL)


async def _until_continued(app: Forge, handle: JobHandle) -> None:
    """Wait until another worker has started a slice."""
    lease = (await app.get(handle.id)).lease
    while (await app.get(handle.id)).lease == lease:  # noqa: ASYNC110
        await asyncio.sleep(0.005)


async def _waits(app: Forge, count: int) -> list[float]:
    """Return how long ordinary jobs take from dispatch to their result."""
    found = []
    for _ in range(count):
        began = perf_counter()
        await (await app.dispatch("no_op", {})).result(60)
        found.append((perf_counter() - began) * 1000)
        await asyncio.sleep(0.1)
    return found


def _summary(waits: list[float]) -> str:
    return f"p50 {median(waits):.1f} ms, p99 {_p99(waits):.1f} ms"


def _p99(waits: list[float]) -> float:
    return quantiles(waits, n=100)[98]


if __name__ == "__main__":
    main()
