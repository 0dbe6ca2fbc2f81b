"""Fixtures: apps on the test's database, and workers inside the test's event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from forge import Config, Forge, JobContext, JobHandle, Worker
from forge.core.events import Event, WorkerNotice
from tests.faults.kit.process import until

FAST: dict[str, Any] = {
    "poll_interval": "20ms",
    "heartbeat_interval": "500ms",
    "dead_after": "30s",
    "shutdown_grace": "5s",
    "metrics_port": "off",
}

MakeApp = Callable[..., Forge]
Work = Callable[..., Awaitable[Worker]]


@pytest.fixture
async def make_app(database_url: str) -> AsyncIterator[MakeApp]:
    """Create apps on the test's database; keywords are worker settings or whole sections."""
    made: list[Forge] = []

    def make(**settings: Any) -> Forge:
        sections = {key: settings.pop(key) for key in list(settings) if key in Config.model_fields}
        app = Forge(Config(worker=FAST | settings, **sections), database_url=database_url)
        made.append(app)
        return app

    yield make
    for app in made:
        await app.close()


@pytest.fixture
def app(make_app: MakeApp) -> Forge:
    """An app on the test's database."""
    return make_app()


@pytest.fixture
async def work(make_app: MakeApp) -> AsyncIterator[Work]:
    """Start workers; after the test each is drained, and none may have logged an error."""
    running: list[tuple[Worker, asyncio.Task[None]]] = []
    errors: list[Event] = []

    def note(event: Event) -> None:
        if isinstance(event, WorkerNotice) and event.level == "error":
            errors.append(event)

    async def start(app: Forge) -> Worker:
        app.events.listeners.append(note)
        worker = Worker(app)
        task = asyncio.create_task(worker.run())
        started = asyncio.create_task(worker.started.wait())
        await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if task.done():
            await task
        running.append((worker, task))
        return worker

    yield start
    for worker, task in running:
        worker.drain()
        await asyncio.wait_for(task, 30)
        worker.events.listeners.remove(note)
    assert errors == []


@asynccontextmanager
async def working(app: Forge) -> AsyncIterator[Worker]:
    """Run a worker during the block; then drain it and close its app."""
    worker = Worker(app)
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(worker.started.wait(), 30)
    try:
        yield worker
    finally:
        worker.drain()
        await asyncio.wait_for(running, 30)
        await app.close()


async def waiting(app: Forge, delay: str = "1h", **options: Any) -> JobHandle:
    """Dispatch a job that is due in an hour."""
    if "waits" not in app.definitions:

        @app.job
        async def waits(ctx: JobContext) -> str:
            return "ran"

    return await app.dispatch("waits", delay=delay, **options)


async def fill_slots(app: Forge, work: Work, **options: Any) -> tuple[Worker, list[JobHandle]]:
    """Start a worker and fill its slots with jobs that run until they are stopped."""

    @app.job
    async def hold(ctx: JobContext) -> None:
        await asyncio.Event().wait()

    worker = await work(app)
    slots = app.config.worker.max_concurrent
    held = [await hold.dispatch(**options) for _ in range(slots)]
    await until(lambda: worker.held.slots_taken == slots, 10, "all slots are taken")
    return worker, held
