"""Timeouts: how each kind of handler is stopped, and what becomes of its slot."""

import asyncio
import threading
from typing import Any

import pytest

from forge import Forge, JobContext, JobFailed, TimedOut
from forge.worker.attempts import Stop
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.worker import handlers


async def test_a_coroutine_is_cancelled_at_its_timeout(app: Forge, work: Work) -> None:
    ended: list[str] = []

    @app.job(timeout="200ms", max_attempts=1)
    async def hang(ctx: JobContext) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    await work(app)

    with pytest.raises(JobFailed, match=r"longer than its timeout of 0:00:00\.2"):
        await (await hang.dispatch()).result(10)
    assert ended == ["cancelled"]


async def test_a_coroutine_that_swallows_its_cancellation_has_timed_out_all_the_same(
    app: Forge, work: Work
) -> None:
    @app.job(timeout="200ms", max_attempts=1)
    async def stubborn(ctx: JobContext) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "as if nothing had happened"
        return "never"

    await work(app)

    with pytest.raises(JobFailed, match="longer than its timeout"):
        await (await stubborn.dispatch()).result(10)


async def test_a_thread_is_asked_to_stop_by_an_exception_in_its_code(
    app: Forge, work: Work
) -> None:
    raised: list[str] = []

    @app.job(timeout="200ms", max_attempts=1)
    def spin(ctx: JobContext) -> None:
        tick = threading.Event()
        try:
            while True:
                tick.wait(0.01)
        except TimedOut as error:
            raised.append(type(error).__name__)
            raise

    await work(app)

    with pytest.raises(JobFailed, match="longer than its timeout"):
        await (await spin.dispatch()).result(10)
    assert raised == ["TimedOut"]


async def test_a_thread_keeps_its_slot_and_its_job_until_it_really_ends(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(max_concurrent=1)
    release, overdue = threading.Event(), threading.Event()

    @app.job(timeout="100ms", max_attempts=2)
    def deaf(ctx: JobContext) -> None:
        while not release.is_set():
            try:
                release.wait(0.05)
            except TimedOut:
                overdue.set()

    @app.job
    async def ping(ctx: JobContext) -> str:
        return "pong"

    worker = await work(app)
    stuck = await deaf.dispatch()
    waiting = await ping.dispatch()
    await until(overdue.is_set, 10, "the thread was asked to stop")

    assert len(worker.runner.running) == 1
    assert (await stuck.get()).status == "running"
    assert (await waiting.get()).status == "pending"

    release.set()
    assert await waiting.result(10) == "pong"
    async for job in stuck.updates():
        if job.status == "retry":
            break
    assert (job.attempts, job.lease) == (1, 1)
    assert "timeout" in (job.last_error or "")


async def test_a_child_process_is_killed_at_its_timeout(app: Forge, work: Work) -> None:
    app.register(handlers.spin)
    await work(app)
    handle = await handlers.spin.dispatch()

    with pytest.raises(JobFailed, match=r"longer than its timeout of 0:00:00\.3"):
        await handle.result(30)
    job = await handle.get()
    assert (job.attempts, job.crashes, job.error_class) == (1, 0, "transient")


async def test_a_timeout_is_transient_and_is_tried_again(app: Forge, work: Work) -> None:
    @app.job(timeout="100ms")
    async def hang(ctx: JobContext) -> str:
        if not ctx.is_retry:
            await asyncio.Event().wait()
        return "in time"

    await work(app)
    handle = await hang.dispatch()

    async for job in handle.updates():
        if job.status == "retry":
            break
    assert job.error_class == "transient"
    assert await handle.result(10) == "in time"


async def test_a_job_in_time_is_left_alone_while_another_times_out(app: Forge, work: Work) -> None:
    go_on = asyncio.Event()

    @app.job(timeout="100ms", max_attempts=1)
    async def hang(ctx: JobContext) -> None:
        await asyncio.Event().wait()

    @app.job(timeout="1m")
    async def patient(ctx: JobContext) -> str:
        await go_on.wait()
        return "done"

    await work(app)
    slow = await patient.dispatch()
    with pytest.raises(JobFailed):
        await (await hang.dispatch()).result(10)
    go_on.set()

    assert await slow.result(10) == "done"


@pytest.mark.parametrize("timeout", ["soon", "0s", "-1s", 30, "1 hour", None])
def test_a_timeout_that_is_no_duration_is_refused_where_it_is_written(
    app: Forge, timeout: Any
) -> None:
    with pytest.raises(ValueError, match='"30s", "5m", "2h", "1000ms"'):

        @app.job(timeout=timeout)
        async def hang(ctx: Any) -> None: ...


@pytest.mark.parametrize("kind", ["thread", "async"])
async def test_a_handler_that_is_asked_twice_at_once_can_clean_up(
    app: Forge, work: Work, kind: str
) -> None:
    """The heartbeat's thread and the event loop may both ask for the same reason."""
    begins, ends, asked_again = threading.Event(), threading.Event(), threading.Event()

    def in_thread(ctx: JobContext) -> None:
        if ctx.is_retry:
            return
        try:
            while True:
                threading.Event().wait(0.01)
        finally:
            begins.set()
            while not asked_again.is_set():
                threading.Event().wait(0.01)
            ends.set()

    async def on_the_loop(ctx: JobContext) -> None:
        if ctx.is_retry:
            return
        try:
            await asyncio.Event().wait()
        finally:
            begins.set()
            await until(asked_again.is_set, 20, "it was asked again")
            ends.set()

    job = app.job(in_thread if kind == "thread" else on_the_loop)
    worker = await work(app)
    await job.dispatch()
    await until(lambda: worker.runner.running, 20, "it runs")
    (attempt,) = worker.runner.running.values()
    if kind == "thread":
        await until(lambda: attempt.is_interruptible, 20, "its thread runs")
    worker.runner.release_all(Stop.CUT_OFF)
    await until(begins.is_set, 20, "it cleans up")

    worker.runner.interrupt_all(Stop.CUT_OFF)
    worker.runner.release_all(Stop.CUT_OFF)
    asked_again.set()

    await until(ends.is_set, 20, "it has cleaned up")
