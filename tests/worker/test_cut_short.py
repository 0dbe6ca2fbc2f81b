"""A worker whose task is cancelled from outside, as by a loop that ends."""

import asyncio
import threading
from uuid import uuid4

import pytest

from forge import Forge, JobContext, Worker
from forge.core.events import Events
from forge.store.connection.database import Database
from forge.store.workers import Beat, Load, Registration
from forge.worker.heartbeat import Heartbeat
from forge.worker.heartbeat_carrier import WorkerLinks
from forge.worker.liveness import HeartbeatTiming, Liveness
from tests.apps import MakeApp, Work


async def test_a_worker_that_was_cut_short_does_not_look_alive(
    make_app: MakeApp, work: Work
) -> None:
    """Its jobs go to another as those of any dead one."""
    began, stopped = asyncio.Event(), asyncio.Event()

    def app_of() -> Forge:
        app = make_app(heartbeat_interval="100ms", dead_after="600ms", poll_interval="50ms")

        @app.job
        async def ping(ctx: JobContext) -> int:
            began.set()
            if ctx.lease == 1:
                try:
                    await asyncio.Event().wait()
                finally:
                    stopped.set()
            return ctx.lease

        return app

    first = app_of()
    cut_short = asyncio.create_task(Worker(first).run())
    handle = await first.dispatch("ping", {})
    await asyncio.wait_for(began.wait(), 10)

    cut_short.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cut_short

    await asyncio.wait_for(stopped.wait(), 10)
    assert "forge-heart" not in [thread.name for thread in threading.enumerate()]
    await work(app_of())
    async for job in handle.updates():
        if job.crashes:
            break
    assert job.status in ("retry", "claimed", "running")


async def test_a_heart_that_is_stopped_as_it_starts_does_not_beat_on(database_url: str) -> None:
    worker = Registration(uuid4(), uuid4(), "host", 1, "0", [], None, [], 1)

    for _ in range(10):
        database = Database(database_url)
        heartbeat = Heartbeat(
            database,
            worker,
            Liveness(HeartbeatTiming(1, 6, 300, 300)),
            Ignored(),
            WorkerLinks(database),
            Events(),
        )
        heartbeat.start()
        heartbeat.stop()

        assert "forge-heart" not in [thread.name for thread in threading.enumerate()]


class Ignored:
    """A worker that does not react to heartbeats."""

    def load(self) -> Load:
        return Load(0, False)

    def on_beat(self, beat: Beat, *, was_silent: bool) -> None: ...

    def on_silence(self) -> list[str]:
        return []
