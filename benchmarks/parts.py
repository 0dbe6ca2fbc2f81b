"""Hand-written parts of a worker next to their replacements: `python -m benchmarks.parts`.

One worker drains no-op jobs and switches between the variants several times a second, as in
`benchmarks.telemetry`. The figures are processor time per job, so other load on the machine moves
them little. Decisions 15 to 17 quote them.
"""

import asyncio
import logging
import os
import tempfile
from collections.abc import Awaitable, Callable
from typing import TextIO
from unittest.mock import patch

import click
import uvloop
from prometheus_client import CollectorRegistry, Histogram, values

from benchmarks.server import ThrowawayServer
from benchmarks.telemetry import Variant, line_listeners, measure
from forge import Worker
from forge.config.settings import WorkerConfig
from forge.core.events import CompletionListener, Events
from forge.core.job import Job
from forge.core.workers.clock import DatabaseClock
from forge.telemetry.logs.listener import JsonFormatter, TextFormatter, log_event
from forge.telemetry.metrics.attempts import measure_attempts
from forge.telemetry.metrics.registries import JOB_SECONDS, WAIT_MILLISECONDS, WorkerMetrics
from forge.worker import runner
from forge.worker.attempts import Attempt, Slots


class EitherSlots(Slots):
    """Runs attempts as a worker does, or each in a task of its own."""

    task_per_attempt = False

    def __init__(self, attempt: Callable[[Attempt], Awaitable[None]]) -> None:
        super().__init__(attempt)
        self._run_attempt = attempt
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, attempt: Attempt) -> None:
        if not EitherSlots.task_per_attempt:
            super().take(attempt)
            return
        task = asyncio.ensure_future(self._run(attempt))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, attempt: Attempt) -> None:
        attempt.task = asyncio.current_task()
        await self._run_attempt(attempt)


@click.command()
@click.option("--jobs", default=1_000_000, show_default=True)
@click.option("--turn", default=0.1, show_default=True, help="Seconds per variant and turn.")
@click.option("--slots", default=100, show_default=True)
@click.option("--batch", default=1000, show_default=True)
def main(jobs: int, turn: float, slots: int, batch: int) -> None:
    """Measure each variant, and print what it adds to a job."""
    settings = WorkerConfig(max_concurrent=slots, batch_size=batch)
    with (
        patch.object(runner, "Slots", EitherSlots),
        ThrowawayServer() as dsn,
        open(os.devnull, "w") as sink,
        tempfile.TemporaryDirectory() as folder,
    ):
        measuring = measure(
            dsn, jobs, turn, settings, lambda worker: _variants(worker, sink, folder)
        )
        quiet, *others = uvloop.run(measuring)
    click.echo(f"{quiet.name:46} {quiet.microseconds:8.2f} µs")
    for variant in others:
        added = variant.microseconds - quiet.microseconds
        click.echo(f"{variant.name:46} {added:+8.2f} µs {added / quiet.microseconds:+8.1%}")


async def _variants(worker: Worker, sink: TextIO, folder: str) -> list[Variant]:
    clock = worker.heartbeat.clock
    return [
        Variant("no listeners, slots", "", begin=_in_slots),
        Variant("no listeners, a task per attempt", "", begin=_in_tasks),
        Variant("metrics, own", "", _own_metrics(clock), begin=_in_slots),
        Variant("metrics, prometheus_client", "", [_library_metrics(clock)]),
        Variant("metrics, prometheus_client multiprocess", "", [_mapped_metrics(clock, folder)]),
        Variant("text lines, own", "", line_listeners("text", sink)),
        _through_logging("text lines, logging", TextFormatter(), sink),
        Variant("JSON lines, own", "", line_listeners("json", sink)),
        _through_logging("JSON lines, logging", JsonFormatter(), sink),
    ]


def _in_tasks() -> None:
    EitherSlots.task_per_attempt = True


def _in_slots() -> None:
    EitherSlots.task_per_attempt = False


def _own_metrics(clock: DatabaseClock) -> list[CompletionListener]:
    events = Events()
    measure_attempts(events, WorkerMetrics(), clock)
    return events.completion_listeners


def _library_metrics(clock: DatabaseClock) -> CompletionListener:
    """Observe the same two histograms with the library's own, their labels looked up once."""
    registry = CollectorRegistry()
    durations = Histogram(
        "took", "Took.", ("type", "status"), buckets=JOB_SECONDS, registry=registry
    )
    waits = Histogram("waited", "Waited.", ("type",), buckets=WAIT_MILLISECONDS, registry=registry)
    by_type = {"no_op": (durations.labels("no_op", "completed"), waits.labels("no_op"))}

    def completed(job: Job, seconds: float, began: float | None) -> None:
        duration, wait = by_type[job.type]
        duration.observe(seconds)
        if began is not None:
            wait.observe(max((began + clock.ahead - job.due) * 1000, 0.0))

    return completed


def _mapped_metrics(clock: DatabaseClock, folder: str) -> CompletionListener:
    """Observe them in memory-mapped files, as the library does for several processes."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    in_memory, values.ValueClass = values.ValueClass, values.MultiProcessValue()  # type: ignore[no-untyped-call]
    try:
        return _library_metrics(clock)
    finally:
        values.ValueClass = in_memory


def _through_logging(name: str, formatter: logging.Formatter, sink: TextIO) -> Variant:
    handler = logging.StreamHandler(sink)
    handler.setFormatter(formatter)

    def begin() -> None:
        logging.getLogger().handlers[:] = [handler]

    return Variant(name, "", event_listeners=[log_event], begin=begin)


if __name__ == "__main__":
    main()
