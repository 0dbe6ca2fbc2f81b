"""A bulk action on a million jobs next to ordinary jobs, with the worker killed twice.

`python -m benchmarks.bulk`
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
from benchmarks.worker_process import worker_process
from forge import Forge, JobHandle

KILLS = 2


@click.command()
@click.option("--jobs", default=1_000_000, show_default=True)
@click.option(
    "--samples",
    default=200,
    show_default=True,
    help="Ordinary jobs measured before the action, and before each kill.",
)
def main(jobs: int, samples: int) -> None:
    """Cancel waiting jobs in bulk while ordinary jobs arrive, each after the one before.

    The worker is killed twice in the middle of a slice, and another worker continues.
    """
    with ThrowawayServer() as dsn:
        held = uvloop.run(_measure(dsn, jobs, samples))
    sys.exit(0 if held else 1)


async def _measure(dsn: str, jobs: int, samples: int) -> bool:
    app = app_on(dsn)
    async with app, connected(dsn, 1) as (connection,):
        await app.migrate()
        await connection.execute(sql("fill_waiting"), jobs)
        await connection.execute(sql("forge_vacuum"))
        meanwhile: list[float] = []
        spent = 0.0
        async with worker_process(dsn, slots=100, batch=100, ends_with=-signal.SIGKILL) as worker:
            alone = await _waits(app, samples)
            began = perf_counter()
            handle = await app.bulk("cancel", {"queue": "later"}, reason="a benchmark")
            meanwhile += await _waits(app, samples)
            await _kill_during_slice(app, handle, worker)
            spent += perf_counter() - began
        for _ in range(KILLS - 1):
            async with worker_process(
                dsn, slots=100, batch=100, ends_with=-signal.SIGKILL
            ) as worker:
                began = await _continued(app, handle)
                meanwhile += await _waits(app, samples)
                await _kill_during_slice(app, handle, worker)
                spent += perf_counter() - began
        killed_at = (await app.get(handle.id)).progress_percent
        async with worker_process(dsn, slots=100, batch=100):
            began = await _continued(app, handle)
            ending = asyncio.create_task(handle.result())
            while not ending.done():
                meanwhile += await _waits(app, 10)
            report = await ending
            spent += perf_counter() - began
        changed = await connection.fetchrow(sql("changed_by_bulk"))
    click.echo(f"     killed last at {killed_at} %; {report} in {spent:.1f} s with a worker")
    detail = f"{_summary(meanwhile)}; alone {_summary(alone)}"
    return all(
        [
            judged("jobs changed once, of all", changed["once"] / jobs, "≥ 1"),
            judged("jobs changed more than once or not at all", changed["others"], "≤ 0"),
            judged("jobs that the report counts, of all", report["done"] / jobs, "≥ 1"),
            judged("jobs changed per second", jobs / spent, "≥ 500"),
            judged(
                "ordinary job meanwhile, p99, of p99 alone",
                _p99(meanwhile) / _p99(alone),
                "≤ 2",
                detail,
            ),
        ]
    )


async def _kill_during_slice(app: Forge, handle: JobHandle, worker: int) -> None:
    while (job := await app.get(handle.id)).status != "running":
        if job.is_final:
            raise click.ClickException("it ended before the worker was killed; pass more --jobs")
        await asyncio.sleep(0.005)
    os.kill(worker, signal.SIGKILL)


async def _continued(app: Forge, handle: JobHandle) -> float:
    """Wait until another worker has started a slice, and return when."""
    lease = (await app.get(handle.id)).lease
    while (await app.get(handle.id)).lease == lease:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    return perf_counter()


async def _waits(app: Forge, count: int) -> list[float]:
    """Return how long ordinary jobs take from dispatch to their result."""
    found = []
    for _ in range(count):
        began = perf_counter()
        await (await app.dispatch("no_op", {})).result(60)
        found.append((perf_counter() - began) * 1000)
        await asyncio.sleep(0.02)
    return found


def _summary(waits: list[float]) -> str:
    return f"p50 {median(waits):.1f} ms, p99 {_p99(waits):.1f} ms, {len(waits)} jobs"


def _p99(waits: list[float]) -> float:
    return quantiles(waits, n=100)[98]


if __name__ == "__main__":
    main()
