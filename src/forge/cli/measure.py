"""The measurement behind `forge bench`: no-op jobs through a real worker."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from forge.app import Forge
from forge.config import Config
from forge.config_transport import TransportConfig
from forge.registry import job
from forge.store import bench
from forge.worker.worker import Worker

ONE_BY_ONE = 500
# How often to look whether all is done; the time itself is taken by the last look.
LOOK = 0.005


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen; times in seconds."""

    jobs: int
    max_concurrent: int
    batch_size: int
    dispatches_per_second: float
    bulk_dispatches_per_second: float
    jobs_per_second: float
    latency_p50: float
    latency_p99: float
    wal_bytes_per_job: float


async def measure(app: Forge, count: int) -> Measured:
    """Measure in a database beside the app's own."""
    beside = await (await app.session()).database()
    async with (
        bench.throwaway_database(beside) as url,
        Forge(_apart(app.config), database_url=url) as measured,
    ):
        return await _Measurement(measured, count).run()


def _apart(config: Config) -> Config:
    """Leave out what a worker shares with others: their messages would be taken from them."""
    worker = config.worker.model_copy(update={"queues": None})
    return config.model_copy(update={"worker": worker, "transport": TransportConfig()})


class _Measurement:
    def __init__(self, app: Forge, count: int) -> None:
        self._app = app
        self._count = count
        self._started: asyncio.Queue[float] = asyncio.Queue()

        @job(name="forge_bench")
        async def forge_bench(ctx: Any, input: dict[str, Any]) -> None:
            if "waited_for" in input:
                self._started.put_nowait(time.perf_counter())

        app.register(forge_bench)

    async def run(self) -> Measured:
        database = await (await self._app.session()).database()
        settings = self._app.config.worker
        wal_before = await database.run(bench.wal_position())
        bulk = await self._dispatch_in_bulk()
        throughput = await self._work_off()
        wal = await database.run(bench.wal_position()) - wal_before
        singly = await self._dispatch_one_by_one()
        await self._work_off()
        waits = await self._wait_one_by_one()
        percentiles = quantiles(waits, n=100)
        return Measured(
            jobs=self._count,
            max_concurrent=settings.max_concurrent,
            batch_size=settings.batch_size,
            dispatches_per_second=singly,
            bulk_dispatches_per_second=bulk,
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
        for _ in range(ONE_BY_ONE):
            await self._app.dispatch("forge_bench", {})
        return ONE_BY_ONE / (time.perf_counter() - began)

    async def _work_off(self) -> float:
        """Run a worker until nothing is left to do; return jobs per second."""
        database = await (await self._app.session()).database()
        async with self._worker():
            began = time.perf_counter()
            # The acks of a worker have no event: only the database knows when all are written.
            while await database.run(bench.has_work()):  # noqa: ASYNC110
                await asyncio.sleep(LOOK)
            return self._count / (time.perf_counter() - began)

    async def _wait_one_by_one(self) -> list[float]:
        """Dispatch to an idle worker, and take the time until each job starts."""
        waits = []
        async with self._worker():
            for _ in range(ONE_BY_ONE):
                began = time.perf_counter()
                await self._app.dispatch("forge_bench", {"waited_for": True})
                waits.append(await self._started.get() - began)
        return waits

    @asynccontextmanager
    async def _worker(self) -> AsyncIterator[None]:
        worker = Worker(self._app)
        running = asyncio.ensure_future(worker.run())
        started = asyncio.ensure_future(worker.started.wait())
        await asyncio.wait([running, started], return_when=asyncio.FIRST_COMPLETED)
        try:
            yield
        finally:
            worker.drain()
            await running
