"""What metrics and logs cost a worker: `python -m benchmarks.telemetry`.

One worker process drains the same jobs with each setting in turn, several times, so that whatever
else the machine does disturbs all of them alike. Beside the rate stands the processor time of the
worker itself, which nobody else disturbs.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import NamedTuple

import psutil

from benchmarks.engine import INPUT, app_on
from benchmarks.reference_table import connected, sql
from benchmarks.server import ThrowawayServer
from benchmarks.worker_process import ROOT, drained
from forge.store.migrate import migrate


class Setting(NamedTuple):
    """What the worker tells while it works."""

    name: str
    metrics_port: str
    log_arguments: tuple[str, ...]


class Cost(NamedTuple):
    """A drain: jobs per second, and the worker's own processor time for each in microseconds."""

    rate: float
    microseconds: float


QUIET = Setting("neither", "off", ("--log-level=off",))
SETTINGS = (
    QUIET,
    Setting("metrics", "0", ("--log-level=off",)),
    Setting("logs, text", "off", ("--log-level=info",)),
    Setting("logs, JSON", "off", ("--log-level=info", "--log-format=json")),
)
# The jobs are due when the worker has long begun: its start is not what is measured.
HEAD_START = 8.0
SETTLED_BEFORE = 0.5
FILLED_A_SECOND = 50_000
# How much of the rate without must be left.
WANTED = {"metrics": 0.95, "logs, text": 0.85, "logs, JSON": 0.85}


async def main(jobs: int, rounds: int, slots: int, batch: int) -> int:
    """Measure, print a table, and return 1 where something costs more than it may."""
    costs: dict[Setting, list[Cost]] = {setting: [] for setting in SETTINGS}
    async with ThrowawayServer() as dsn:
        async with app_on(dsn) as app:
            await migrate(await (await app.session()).database())
        for _ in range(rounds):
            for setting in SETTINGS:
                costs[setting].append(await drain(dsn, setting, jobs, slots, batch))
    return _report(costs)


async def drain(dsn: str, setting: Setting, jobs: int, slots: int, batch: int) -> Cost:
    """Dispatch many no-op jobs, then let one worker process run them all."""
    async with connected(dsn, 1) as (connection,), app_on(dsn) as app:
        await connection.execute(sql("forge_empty"))
        due = datetime.now(UTC) + timedelta(seconds=HEAD_START + jobs / FILLED_A_SECOND)
        await app.dispatch_many("no_op", [INPUT] * jobs, scheduled_at=due)
        await connection.execute(sql("forge_vacuum"))
        await connection.execute(sql("checkpoint"))
        async with _worker(dsn, setting, slots, batch) as pid:
            await asyncio.sleep((due - datetime.now(UTC)).total_seconds() - SETTLED_BEFORE)
            before = sum(psutil.Process(pid).cpu_times()[:2])
            await drained(connection)
            spent = sum(psutil.Process(pid).cpu_times()[:2]) - before
        span = await connection.fetchrow(sql("forge_span"), "no_op")
    return Cost(jobs / span["seconds"], spent / jobs * 1e6)


@asynccontextmanager
async def _worker(dsn: str, setting: Setting, slots: int, batch: int) -> AsyncIterator[int]:
    command = ["-m", "forge.cli.main", "worker", "benchmarks.jobs_app:app", *setting.log_arguments]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        cwd=ROOT,
        env=os.environ
        | {
            "FORGE_DATABASE_URL": dsn,
            "FORGE_WORKER_MAX_CONCURRENT": str(slots),
            "FORGE_WORKER_BATCH_SIZE": str(batch),
            "FORGE_WORKER_METRICS_PORT": setting.metrics_port,
        },
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process.pid
    finally:
        process.terminate()
        await process.wait()


def _report(costs: dict[Setting, list[Cost]]) -> int:
    quiet = costs[QUIET]
    # What a job takes where nothing is told and nobody disturbs, of which the rest is a share.
    undisturbed = 1e6 / max(cost.rate for cost in quiet)
    least_quiet = min(cost.microseconds for cost in quiet)
    code = 0
    print(f"{'':12}{'jobs/s':>10}{'of quiet':>10}{'CPU µs/job':>12}{'by CPU':>10}{'wanted':>8}")
    for setting, measured in costs.items():
        # Of each round by itself: what disturbed one drain disturbed its neighbour, too.
        rates = median(c.rate / q.rate for c, q in zip(measured, quiet, strict=True))
        least = min(cost.microseconds for cost in measured)
        by_cpu = undisturbed / (undisturbed + least - least_quiet)
        wanted = WANTED.get(setting.name)
        told = "" if wanted is None else f"{wanted:8.2f}"
        best = max(cost.rate for cost in measured)
        print(f"{setting.name:12}{best:10,.0f}{rates:10.3f}{least:12.1f}{by_cpu:10.3f}{told}")
        if wanted is not None and min(rates, by_cpu) < wanted:
            code = 1
    return code


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--jobs", type=int, default=200_000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--slots", type=int, default=100)
    arguments.add_argument("--batch", type=int, default=1000)
    given = arguments.parse_args()
    sys.exit(asyncio.run(main(given.jobs, given.rounds, given.slots, given.batch)))
