"""Where a worker's metrics go: to a port of its own, or to the process that started it."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from forge.telemetry.attempts import measure_attempts, measure_running
from forge.telemetry.exposition import Collects, MetricsServer
from forge.telemetry.merging import Reporter
from forge.telemetry.queries import of_worker
from forge.telemetry.queue import QueueWatch
from forge.telemetry.services import measure_services

if TYPE_CHECKING:
    from forge.config import WorkerConfig
    from forge.worker.worker import Worker

log = logging.getLogger("forge")
LOOK_INTERVAL = 1.0


@asynccontextmanager
async def measured(worker: "Worker", reports: int | None) -> AsyncIterator[None]:
    """Measure a worker, and show it for the time of the block; nothing where that is off."""
    if reports is None and worker.settings.metrics_port is None:
        yield
        return
    metrics = worker.app.metrics.worker
    worker.app.observers.append(of_worker(metrics))
    with ExitStack() as shown:
        if reports is not None:
            shown.enter_context(_reported(metrics.registry, reports))
        measuring = asyncio.ensure_future(_measure(worker, shown, reports))
        try:
            yield
        finally:
            measuring.cancel()


@contextmanager
def served(settings: "WorkerConfig", metrics: Collects) -> Iterator[None]:
    """Serve metrics on the port of the settings, or on the next one that is free."""
    if settings.metrics_port is None:
        yield
        return
    try:
        server = MetricsServer(settings.metrics_host, settings.metrics_port, metrics)
    except OSError as error:
        # Jobs are more important than their figures.
        log.error(
            "no metrics: cannot listen on %s:%d: %s; set [worker] metrics_host, metrics_port",
            settings.metrics_host,
            settings.metrics_port,
            error.strerror or error,
        )
        yield
        return
    if server.is_elsewhere:
        log.warning("port %d is taken; metrics are on %s", server.wanted, server.address)
    else:
        log.info("metrics are on %s", server.address)
    try:
        yield
    finally:
        server.close()


@contextmanager
def _reported(metrics: Collects, reports: int) -> Iterator[None]:
    reporter = Reporter(socket.socket(fileno=reports), metrics)
    try:
        yield
    finally:
        reporter.farewell()


async def _measure(worker: "Worker", shown: ExitStack, reports: int | None) -> None:
    from forge.store import workers
    from forge.worker.every import every

    await worker.started.wait()
    if reports is None:  # one that cannot begin has nothing to show
        shown.enter_context(served(worker.settings, worker.app.metrics.worker.registry))
    metrics, running = worker.app.metrics.worker, worker.runner.running
    measure_attempts(worker.events, metrics, worker.heart.clock)
    measure_services(worker.events, metrics)
    measure_running(metrics, lambda: [attempt.job for attempt in list(running.values())])
    database = await (await worker.app.session()).database()
    dead_after = worker.settings.dead_after.total_seconds()
    watch = QueueWatch(metrics.queue, dead_after, metrics.job_queue_depth)

    async def look() -> None:
        """One of all workers looks at the queue: what all showed would be added up."""
        if not watch.is_due:
            return
        if await worker.around.run(workers.first(dead_after)) == [worker.registration.id]:
            await watch.refresh(database.run)
        else:
            watch.rest()

    await every(LOOK_INTERVAL, look, asyncio.Event(), worker.events)
