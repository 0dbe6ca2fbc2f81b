"""The end of a worker: nothing new, a grace for what runs, and the rest given back."""

import asyncio
from typing import TYPE_CHECKING

from forge.store.waiting import within

if TYPE_CHECKING:
    from forge.worker.worker import Worker

# How long a handler that was told to stop may take to do so.
LAST_WORDS = 2.0


async def wind_down(
    worker: "Worker",
    claiming: "asyncio.Task[None]",
    requests: "asyncio.Task[None]",
    acking: "list[asyncio.Task[None]]",
) -> None:
    """Return when everything that a worker began is over and written, or given back."""
    worker.heart.draining = True
    worker.claimer.stop()
    if worker.messages is not None:
        await worker.messages.receiver.stop()
    await claiming
    worker.release_jobs(worker.claimer.ahead.take_all())
    await _finish_running(worker, requests)
    worker.stopping.set()
    worker.acker.wake()
    if worker.recurrence is not None:
        worker.recurrence.concluder.wake()
    await asyncio.wait(acking, timeout=worker.settings.shutdown_grace.total_seconds())
    if not all(task.done() for task in acking):
        worker.events.notice("error", "the database is away: what is not written will run again")
        for task in acking:
            task.cancel()


async def _finish_running(worker: "Worker", requests: "asyncio.Task[None]") -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + worker.settings.shutdown_grace.total_seconds()
    while worker.runner.running and loop.time() < end:
        if not worker.runner.slots_taken:
            worker.request_claimer.stop()  # a stream of requests must not keep the worker
        if await within(worker.releasing, 0.05):
            break
    worker.request_claimer.stop()
    await requests
    if worker.runner.running:
        await _release_running(worker)


async def _release_running(worker: "Worker") -> None:
    """Ask what still runs to stop; what does not is given back all the same, and we exit."""
    running = worker.runner.running
    tasks = [attempt.task for attempt in running.values() if attempt.task]
    if worker.messages is not None:
        worker.messages.keeper.return_all()
    worker.runner.release_all()
    if tasks:
        await asyncio.wait(tasks, timeout=LAST_WORDS)
    worker.release_jobs([attempt.job for attempt in running.values()], have_begun=True)
