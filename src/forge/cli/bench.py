"""`forge bench`: measures no-op jobs on this machine, in a database of its own."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any

import click

from forge.cli.options import json_option, project_options

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.config.settings import Config

# Jobs that are dispatched one by one, for the dispatch rate and for the latency.
SINGLE_DISPATCHES = 500
# Seconds between two checks whether all jobs are done.
POLL_INTERVAL = 0.005


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured; times in seconds."""

    jobs: int
    max_concurrent: int
    batch_size: int
    dispatches_per_second: float
    bulk_dispatches_per_second: float
    jobs_per_second: float
    latency_p50: float
    latency_p99: float
    wal_bytes_per_job: float


@click.command()
@click.option(
    "--jobs",
    "count",
    type=click.IntRange(100, 10_000_000),
    default=10_000,
    show_default=True,
    help="Number of jobs to run.",
)
@json_option
@project_options
def bench(app_option: str | None, config_path: Path | None, count: int, as_json: bool) -> None:
    """Measure dispatch rate, throughput, latency and WAL with no-op jobs.

    The jobs run in a temporary database on the same server, which is dropped at the end.
    """
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    measured = run(app, lambda app: measure(app, count))
    if as_json:
        print_json(asdict(measured))
    else:
        _print(measured)


def _print(measured: Measurement) -> None:
    click.echo(f"{measured.jobs} no-op jobs, one worker in this process")
    click.echo(f"dispatch, one by one   {measured.dispatches_per_second:10.0f} per second")
    click.echo(f"dispatch, in bulk      {measured.bulk_dispatches_per_second:10.0f} per second")
    click.echo(f"run                    {measured.jobs_per_second:10.0f} per second")
    click.echo(f"dispatch to start, p50 {measured.latency_p50 * 1000:10.2f} ms")
    click.echo(f"dispatch to start, p99 {measured.latency_p99 * 1000:10.2f} ms")
    click.echo(f"WAL                    {measured.wal_bytes_per_job:10.0f} bytes per job")


async def measure(app: "Forge", count: int) -> Measurement:
    """Measure in a temporary database beside the app's own."""
    from forge.app import Forge
    from forge.store import bench as store

    database = await (await app.session()).database()
    async with (
        store.throwaway_database(database) as url,
        Forge(_isolated(app.config), database_url=url) as measured,
    ):
        return await _Bench(measured, count).run()


def _isolated(config: "Config") -> "Config":
    """Leave out queues and transport: the worker would receive messages of the real jobs."""
    from forge.config.transport import TransportConfig

    worker = config.worker.model_copy(update={"queues": None})
    return config.model_copy(update={"worker": worker, "transport": TransportConfig()})


class _Bench:
    def __init__(self, app: "Forge", count: int) -> None:
        from forge.definitions.job import job

        self._app = app
        self._count = count
        self._started: asyncio.Queue[float] = asyncio.Queue()

        @job(name="forge_bench")
        async def forge_bench(ctx: Any, input: dict[str, Any]) -> None:
            if "waited_for" in input:
                self._started.put_nowait(time.perf_counter())

        app.register(forge_bench)

    async def run(self) -> Measurement:
        from forge.store.bench import wal_position

        database = await (await self._app.session()).database()
        settings = self._app.config.worker
        wal_before = await database.run(wal_position())
        bulk_rate = await self._dispatch_in_bulk()
        throughput = await self._run_all()
        wal = await database.run(wal_position()) - wal_before
        single_rate = await self._dispatch_one_by_one()
        await self._run_all()
        percentiles = quantiles(await self._latencies(), n=100)
        return Measurement(
            jobs=self._count,
            max_concurrent=settings.max_concurrent,
            batch_size=settings.batch_size,
            dispatches_per_second=single_rate,
            bulk_dispatches_per_second=bulk_rate,
            jobs_per_second=throughput,
            latency_p50=percentiles[49],
            latency_p99=percentiles[98],
            wal_bytes_per_job=wal / self._count,
        )

    async def _dispatch_in_bulk(self) -> float:
        began = time.perf_counter()
        await self._app.dispatch_many("forge_bench", ({} for _ in range(self._count)))
        return self._count / (time.perf_counter() - began)

    async def _dispatch_one_by_one(self) -> float:
        began = time.perf_counter()
        for _ in range(SINGLE_DISPATCHES):
            await self._app.dispatch("forge_bench", {})
        return SINGLE_DISPATCHES / (time.perf_counter() - began)

    async def _run_all(self) -> float:
        """Run a worker until no job is left; return jobs per second."""
        from forge.store.bench import has_work

        database = await (await self._app.session()).database()
        async with self._worker():
            began = time.perf_counter()
            # A worker emits no event for its acks: only the database knows when all are written.
            while await database.run(has_work()):  # noqa: ASYNC110
                await asyncio.sleep(POLL_INTERVAL)
            return self._count / (time.perf_counter() - began)

    async def _latencies(self) -> list[float]:
        """Dispatch to an idle worker, and measure the time until each job starts."""
        latencies = []
        async with self._worker():
            for _ in range(SINGLE_DISPATCHES):
                began = time.perf_counter()
                await self._app.dispatch("forge_bench", {"waited_for": True})
                latencies.append(await self._started.get() - began)
        return latencies

    @asynccontextmanager
    async def _worker(self) -> AsyncIterator[None]:
        from forge.worker.worker import Worker

        worker = Worker(self._app)
        running = asyncio.ensure_future(worker.run())
        started = asyncio.ensure_future(worker.started.wait())
        await asyncio.wait([running, started], return_when=asyncio.FIRST_COMPLETED)
        try:
            yield
        finally:
            worker.drain()
            await running
