"""What metrics and logs cost a worker: `python -m benchmarks.telemetry`.

One worker drains no-op jobs, and every fraction of a second it is listened to in another way: by
nobody, by metrics, by log lines as text, as JSON. So whatever else the machine does disturbs all of
them alike, and thousands of jobs of each kind stand side by side. Metrics look at the queue, too,
as often as they do in a worker.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import cycle
from time import perf_counter, process_time
from typing import TextIO

import click
import uvloop

from benchmarks.bound import judged
from benchmarks.engine import INPUT, app_on
from benchmarks.reference_table import connected, sql
from benchmarks.server import ThrowawayServer
from forge import Worker
from forge.cli.log_output import set_up_logging
from forge.config import WorkerConfig
from forge.core.event import CompletionListener, Events
from forge.core.job import Job
from forge.telemetry.attempts import measure_attempts
from forge.telemetry.lines import LineHandler
from forge.telemetry.logs import log_events
from forge.telemetry.metrics import WorkerMetrics
from forge.telemetry.queue import INTERVAL, QueueWatch
from forge.worker.garbage import spare_the_collector


@dataclass
class Way:
    """A way to listen, how many jobs were run meanwhile, in what time, and of whose."""

    name: str
    bound: str
    listeners: list[CompletionListener] = field(default_factory=list)
    jobs: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    look: Callable[[], Awaitable[None]] | None = None
    looks: int = 0

    async def keep(self, seconds: float) -> None:
        """Listen in this way for so long."""
        kept = asyncio.sleep(seconds)
        if self.look is not None and self.seconds > (self.looks + 0.5) * INTERVAL:
            self.looks += 1
            await asyncio.gather(kept, self.look())
        else:
            await kept

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds

    @property
    def microseconds(self) -> float:
        return self.processor_seconds / self.jobs * 1e6


@click.command()
@click.option("--jobs", default=1_000_000, show_default=True)
@click.option("--turn", default=0.1, show_default=True, help="Seconds for which one way is kept.")
@click.option("--slots", default=100, show_default=True)
@click.option("--batch", default=1000, show_default=True)
def main(jobs: int, turn: float, slots: int, batch: int) -> None:
    """Measure, and judge each way to listen by what is left of the rate without."""
    settings = WorkerConfig(max_concurrent=slots, batch_size=batch)
    with ThrowawayServer() as dsn, open(os.devnull, "w") as nowhere:
        quiet, *others = uvloop.run(_measure(dsn, jobs, turn, settings, nowhere))
    click.echo(f"     {quiet.rate:,.0f} jobs/s, {quiet.microseconds:.2f} µs of processor time each")
    held = True
    for way in others:
        # What a job takes longer by the worker's own clock, which nobody else's work moves.
        added = way.microseconds - quiet.microseconds
        by_processor = 1 / (1 + added * quiet.rate / 1e6)
        told = f"{added:+.2f} µs a job" + (
            f", looks at the queue: {way.looks}" if way.looks else ""
        )
        held &= judged(f"{way.name}: rate, of the quiet one", way.rate / quiet.rate, way.bound)
        held &= judged(f"{way.name}: the same by processor time", by_processor, way.bound, told)
    sys.exit(0 if held else 1)


async def _measure(
    dsn: str, jobs: int, turn: float, settings: WorkerConfig, nowhere: TextIO
) -> list[Way]:
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
        spare_the_collector()
        ways = await _ways(worker, nowhere)
        await _take_turns(app.events, ways, jobs, turn)
        worker.drain()
        await running
    return ways


async def _ways(worker: Worker, nowhere: TextIO) -> list[Way]:
    measured, metrics = Events(), WorkerMetrics()
    measure_attempts(measured, metrics, worker.heart.clock)
    database = await (await worker.app.session()).database()
    watch = QueueWatch(metrics.queue, 6.0, metrics.job_queue_depth)
    return [
        Way("nobody", ""),
        Way(
            "metrics",
            "≥ 0.95",
            measured.completion_listeners,
            look=lambda: watch.refresh(database.run),
        ),
        Way("log lines as text", "≥ 0.85", _logging("text", nowhere)),
        Way("log lines as JSON", "≥ 0.85", _logging("json", nowhere)),
    ]


def _logging(log_format: str, nowhere: TextIO) -> list[CompletionListener]:
    """Set logging up as the command line does, and return who listens then."""
    set_up_logging(log_format, "info")
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, LineHandler)
    handler.stream = nowhere
    events = Events()
    log_events(events)
    return events.completion_listeners


async def _take_turns(events: Events, ways: list[Way], jobs: int, turn: float) -> None:
    """Listen in each way in turn until the jobs are nearly all done: the last claims are small."""
    done = 0

    def count(job: Job, seconds: float, began: float | None) -> None:
        nonlocal done
        done += 1

    for way in cycle(ways):
        events.completion_listeners[:] = [count, *way.listeners]
        before, began, spent = done, perf_counter(), process_time()
        await way.keep(turn)
        way.jobs += done - before
        way.seconds += perf_counter() - began
        way.processor_seconds += process_time() - spent
        if done > 0.9 * jobs:
            return


if __name__ == "__main__":
    main()
