"""The cost of statistics, metrics and logs in a worker: `python -m benchmarks.telemetry`.

One worker drains no-op jobs and switches its event listeners every fraction of a second: none,
statistics, metrics, log lines as text, log lines as JSON. Other load on the machine therefore
disturbs all of them equally, over thousands of jobs each. Metrics also query the queue, as often as
in a worker.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from time import perf_counter, process_time
from typing import Any, TextIO

import click
import uvloop

from benchmarks.bound import judged
from benchmarks.engine import INPUT, app_on
from benchmarks.reference_table import connected, sql
from benchmarks.server import ThrowawayServer
from forge import Worker
from forge.cli.processes.child_process import tune_garbage_collector
from forge.cli.processes.worker import set_up_logging
from forge.config.settings import WorkerConfig
from forge.core.events import CompletionListener, EventListener, Events
from forge.core.job import Job
from forge.telemetry.logs.lines import LineHandler
from forge.telemetry.logs.listener import log_events
from forge.telemetry.metrics.attempts import measure_attempts
from forge.telemetry.metrics.queue_figures import INTERVAL, QueueWatch
from forge.telemetry.metrics.registries import WorkerMetrics


@dataclass
class Variant:
    """A set of listeners, and the jobs, wall time and processor time while they were active."""

    name: str
    bound: str
    listeners: list[CompletionListener] = field(default_factory=list)
    event_listeners: list[EventListener] = field(default_factory=list)
    begin: Callable[[], None] = lambda: None
    jobs: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    query_queue: Callable[[], Awaitable[None]] | None = None
    queries: int = 0
    # The bound of the rate where the other one is narrower than other load on the machine.
    rate_bound: str | None = None

    async def keep(self, seconds: float) -> None:
        """Keep these listeners for this long."""
        waiting = asyncio.sleep(seconds)
        if self.query_queue is not None and self.seconds > (self.queries + 0.5) * INTERVAL:
            self.queries += 1
            await asyncio.gather(waiting, self.query_queue())
        else:
            await waiting

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds

    @property
    def microseconds(self) -> float:
        return self.processor_seconds / self.jobs * 1e6


class WithoutCounts:
    """Counts nothing, in place of AttemptCounts."""

    def completed(self, acks: Sequence[Any]) -> None: ...

    def ended(self, job: Job, seconds: float | None = None) -> None: ...

    def settled(self, acks: Sequence[Any], refused: Sequence[Any]) -> None: ...


@click.command()
@click.option("--jobs", default=1_000_000, show_default=True)
@click.option("--turn", default=0.1, show_default=True, help="Seconds per turn of one variant.")
@click.option("--slots", default=100, show_default=True)
@click.option("--batch", default=1000, show_default=True)
def main(jobs: int, turn: float, slots: int, batch: int) -> None:
    """Measure, and compare the rate of each variant with the rate without listeners."""
    settings = WorkerConfig(max_concurrent=slots, batch_size=batch)
    with ThrowawayServer() as dsn, open(os.devnull, "w") as sink:
        measuring = measure(dsn, jobs, turn, settings, lambda worker: _variants(worker, sink))
        quiet, *others = uvloop.run(measuring)
    click.echo(f"     {quiet.rate:,.0f} jobs/s, {quiet.microseconds:.2f} µs of processor time each")
    held = True
    for variant in others:
        # Added processor time per job: other load on the machine does not affect it.
        added = variant.microseconds - quiet.microseconds
        by_processor = 1 / (1 + added * quiet.rate / 1e6)
        detail = f"{added:+.2f} µs per job" + (
            f", queue queries: {variant.queries}" if variant.queries else ""
        )
        held &= judged(
            f"{variant.name}: rate, of the rate without",
            variant.rate / quiet.rate,
            variant.rate_bound or variant.bound,
        )
        held &= judged(
            f"{variant.name}: the same by processor time", by_processor, variant.bound, detail
        )
    sys.exit(0 if held else 1)


async def measure(
    dsn: str,
    jobs: int,
    turn: float,
    settings: WorkerConfig,
    make_variants: Callable[[Worker], Awaitable[list[Variant]]],
) -> list[Variant]:
    """Drain no-op jobs with one worker that alternates between the variants."""
    logging.getLogger("forge").setLevel(logging.CRITICAL + 1)
    app = app_on(dsn, worker=settings)
    async with connected(dsn, 1) as (connection,), app:
        await app.migrate()
        await app.dispatch_many("no_op", (INPUT for _ in range(jobs)))
        await connection.execute(sql("forge_vacuum"))
        await connection.execute(sql("checkpoint"))
        worker = Worker(app)
        running = asyncio.create_task(worker.run())
        await worker.started.wait()
        tune_garbage_collector()
        variants = await make_variants(worker)
        await _take_turns(app.events, variants, jobs, turn)
        worker.drain()
        await running
    return variants


async def _variants(worker: Worker, sink: TextIO) -> list[Variant]:
    measured, metrics = Events(), WorkerMetrics()
    measure_attempts(measured, metrics, worker.heartbeat.clock)
    database = await (await worker.app.session()).database()
    watch = QueueWatch(metrics.queue, 6.0, metrics.job_queue_depth)
    acker = worker.jobs.acker
    counts, without = acker.counts, WithoutCounts()

    def count_by(given: Any) -> Callable[[], None]:
        def begin() -> None:
            acker.counts = given

        return begin

    variants = [
        Variant("none", ""),
        Variant(
            "statistics",
            "≥ 0.99",
            query_queue=counts.write,
            rate_bound="≥ 0.95",
        ),
        Variant(
            "metrics",
            "≥ 0.95",
            measured.completion_listeners,
            query_queue=lambda: watch.refresh(database.run),
        ),
        Variant("log lines as text", "≥ 0.85", line_listeners("text", sink)),
        Variant("log lines as JSON", "≥ 0.85", line_listeners("json", sink)),
    ]
    for variant in variants:
        variant.begin = count_by(counts if variant.name == "statistics" else without)
    return variants


def line_listeners(log_format: str, sink: TextIO) -> list[CompletionListener]:
    """Set up logging like the command line, and return its listeners."""
    set_up_logging(log_format, "info")
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, LineHandler)
    handler.stream = sink
    events = Events()
    log_events(events)
    return events.completion_listeners


async def _take_turns(events: Events, variants: list[Variant], jobs: int, turn: float) -> None:
    """Activate the variants in turn until 90% of the jobs are done: the last claims are small."""
    done = 0

    def count(job: Job, seconds: float, began: float | None) -> None:
        nonlocal done
        done += 1

    for variant in cycle(variants):
        variant.begin()
        events.completion_listeners[:] = [count, *variant.listeners]
        events.listeners[:] = variant.event_listeners
        before, began, spent = done, perf_counter(), process_time()
        await variant.keep(turn)
        variant.jobs += done - before
        variant.seconds += perf_counter() - began
        variant.processor_seconds += process_time() - spent
        if done > 0.9 * jobs:
            return


if __name__ == "__main__":
    main()
