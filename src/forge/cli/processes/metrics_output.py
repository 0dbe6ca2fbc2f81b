"""Exports a worker's metrics: on its own port, or to its supervisor."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from forge.telemetry.metrics.attempts import measure_attempts, measure_running
from forge.telemetry.metrics.exposition import Check, MetricCollector, MetricsServer
from forge.telemetry.metrics.external_calls import measure_services
from forge.telemetry.metrics.merging import Reporter
from forge.telemetry.metrics.queries import of_worker
from forge.telemetry.metrics.queue_figures import QueueWatch

if TYPE_CHECKING:
    from forge.config.settings import WorkerConfig
    from forge.worker.worker import Worker

log = logging.getLogger("forge")
LOOK_INTERVAL = 1.0


@asynccontextmanager
async def measured(worker: "Worker", reports: int | None) -> AsyncIterator[None]:
    """Collect and export a worker's metrics within the block, if metrics are enabled."""
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
def served(
    settings: "WorkerConfig", metrics: MetricCollector, checks: Mapping[str, Check]
) -> Iterator[None]:
    """Serve metrics and health checks on the configured port, or on the next free one."""
    if settings.metrics_port is None:
        yield
        return
    try:
        server = MetricsServer(settings.metrics_host, settings.metrics_port, metrics, checks)
    except OSError as error:
        # A worker without metrics is better than none.
        log.error(
            "no metrics: cannot listen on %s:%d: %s; set [worker] metrics_host, metrics_port",
            settings.metrics_host,
            settings.metrics_port,
            error.strerror or error,
        )
        yield
        return
    if server.is_elsewhere:
        log.warning("port %d is in use; metrics are on %s", server.configured_port, server.address)
    else:
        log.info("metrics are on %s", server.address)
    try:
        yield
    finally:
        server.close()


@contextmanager
def _reported(metrics: MetricCollector, reports: int) -> Iterator[None]:
    reporter = Reporter(socket.socket(fileno=reports), metrics)
    try:
        yield
    finally:
        reporter.report_last()


async def _measure(worker: "Worker", shown: ExitStack, reports: int | None) -> None:
    from forge.cli.processes.health import WorkerHealth
    from forge.store import workers
    from forge.worker.loops import every

    await worker.started.wait()
    if reports is None:  # only after startup: a worker that fails to start has no metrics
        health = WorkerHealth(worker)
        registry = worker.app.metrics.worker.registry
        shown.enter_context(served(worker.settings, registry, health.checks))
    metrics, running = worker.app.metrics.worker, worker.runner.running
    measure_attempts(worker.events, metrics, worker.heartbeat.clock)
    measure_services(worker.events, metrics)
    measure_running(metrics, lambda: [attempt.job for attempt in list(running.values())])
    database = await (await worker.app.session()).database()
    dead_after = worker.settings.dead_after.total_seconds()
    watch = QueueWatch(metrics.queue, dead_after, metrics.job_queue_depth)

    async def look() -> None:
        """Refresh in one worker only: Prometheus would sum the figures of all workers."""
        if not watch.is_due:
            return
        if await worker.runtime.run(workers.first(dead_after)) == [worker.registration.id]:
            await watch.refresh(database.run)
        else:
            watch.rest()

    await every(LOOK_INTERVAL, look, asyncio.Event(), worker.events)
