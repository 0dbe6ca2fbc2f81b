"""Cancel and delete requests, which a worker carries out."""

import asyncio
import threading
from contextlib import suppress
from typing import Any

import psutil
import pytest

from forge import Cancelled, Forge, ForgeError, JobContext, JobFailed, JobHandle, NonRetryable
from tests.apps import Work, waiting
from tests.faults.kit.process import until
from tests.worker import handlers


async def test_a_pending_job_is_cancelled_and_never_runs(app: Forge, work: Work, psql: Any) -> None:
    ran: list[str] = []

    @app.job
    async def later(ctx: JobContext) -> None:
        ran.append("ran")

    handle = await later.dispatch(delay="1h")
    await work(app)
    done = await (await handle.cancel("not wanted")).result(10)

    assert done == {"job_id": str(handle.id), "done": "cancelled"}
    job = await handle.get()
    assert (job.status, job.last_error) == ("cancelled", "not wanted")
    assert ran == []
    with pytest.raises(JobFailed, match="ended as cancelled: not wanted"):
        await handle.result(10)


async def test_a_running_coroutine_is_cancelled_immediately(app: Forge, work: Work) -> None:
    ended: list[bool] = []

    @app.job
    async def hang(ctx: JobContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(ctx.cancelled)

    worker = await work(app)
    handle = await hang.dispatch()
    await _running(worker, 1)
    await (await app.cancel(handle.id)).result(10)

    await until(lambda: ended, 10, "the handler was stopped")
    assert ended == [True]
    assert (await handle.get()).status == "cancelled"
    await _running(worker, 0)


async def test_a_running_thread_is_stopped(app: Forge, work: Work) -> None:
    ended: list[str] = []

    @app.job
    def spin(ctx: JobContext) -> None:
        tick = threading.Event()
        try:
            while True:
                tick.wait(0.01)
        except Cancelled as error:
            ended.append(type(error).__name__)
            raise

    worker = await work(app)
    handle = await spin.dispatch()
    await _running(worker, 1)
    await (await app.cancel(handle.id)).result(10)

    await until(lambda: ended, 10, "the thread was stopped")
    assert (await handle.get()).status == "cancelled"
    await _running(worker, 0)


async def test_a_thread_can_check_whether_it_is_cancelled(app: Forge, work: Work) -> None:
    seen: list[bool] = []

    @app.job
    def polite(ctx: JobContext) -> None:
        tick = threading.Event()
        try:
            while not ctx.cancelled:
                tick.wait(0.01)
        except Cancelled:
            pass
        seen.append(ctx.cancelled)

    worker = await work(app)
    handle = await polite.dispatch()
    await _running(worker, 1)
    await (await app.cancel(handle.id)).result(10)

    await until(lambda: seen, 10, "the thread saw it")
    assert seen == [True]


async def test_a_running_child_process_is_killed(app: Forge, work: Work) -> None:
    app.register(handlers.linger)
    worker = await work(app)
    handle = await handlers.linger.dispatch()
    async for job in handle.updates():
        if job.progress_message:
            break
    pid = int(job.progress_message.split()[1])
    await (await app.cancel(handle.id)).result(10)

    await until(lambda: not psutil.pid_exists(pid), 10, "the child is gone")
    await _running(worker, 0)
    job = await handle.get()
    assert (job.status, job.crashes) == ("cancelled", 0)


async def test_the_return_value_of_a_cancelled_attempt_is_ignored(app: Forge, work: Work) -> None:
    @app.job
    async def stubborn(ctx: JobContext) -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "done anyway"

    worker = await work(app)
    handle = await stubborn.dispatch()
    await _running(worker, 1)
    await (await app.cancel(handle.id)).result(10)
    await _running(worker, 0)

    job = await handle.get()
    assert (job.status, job.output) == ("cancelled", None)


async def test_a_finished_job_cannot_be_cancelled(app: Forge, work: Work) -> None:
    @app.job
    async def ping(ctx: JobContext) -> str:
        return "pong"

    await work(app)
    handle = await ping.dispatch()
    await handle.result(10)

    with pytest.raises(JobFailed, match="was left alone: it is final"):
        await (await handle.cancel()).result(10)
    assert (await handle.get()).status == "completed"


async def test_deleting_a_pending_job_cancels_it(app: Forge, work: Work) -> None:
    handle = await waiting(app)
    await work(app)

    assert (await (await app.delete(handle.id)).result(10))["done"] == "cancelled"
    assert (await handle.get()).status == "cancelled"


async def test_deleting_a_job_that_waits_for_a_retry_fails_it(app: Forge, work: Work) -> None:
    @app.job
    async def fail(ctx: JobContext) -> None:
        raise ValueError("no")

    await work(app)
    handle = await fail.dispatch()
    async for job in handle.updates():
        if job.status == "retry":
            break
    await _postpone(app, handle)

    assert (await (await app.delete(handle.id)).result(10))["done"] == "failed"
    job = await handle.get()
    assert (job.status, job.last_error) == ("failed", "no")


async def test_a_running_job_is_not_deleted(app: Forge, work: Work) -> None:
    go_on = asyncio.Event()

    @app.job
    async def slow(ctx: JobContext) -> str:
        await go_on.wait()
        return "done"

    worker = await work(app)
    handle = await slow.dispatch()
    await _running(worker, 1)

    with pytest.raises(JobFailed, match="is being processed; cancel it first"):
        await (await app.delete(handle.id)).result(10)
    go_on.set()
    assert await handle.result(10) == "done"


async def test_deleting_a_final_job_erases_it_with_its_attempts(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(max_attempts=1, dead_letter=False)
    async def fail(ctx: JobContext) -> None:
        raise ValueError("no")

    await work(app)
    handle = await fail.dispatch()
    with pytest.raises(JobFailed):
        await handle.result(10)

    assert (await (await app.delete(handle.id)).result(10))["done"] == "erased"
    with pytest.raises(ForgeError, match="there is no job"):
        await handle.get()
    assert await psql.fetchval("select count(*) from forge_attempts") == 0


async def test_a_job_whose_dead_letter_is_under_review_is_not_erased(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job
    async def fail(ctx: JobContext) -> None:
        raise NonRetryable("no")

    await work(app)
    handle = await fail.dispatch()
    with pytest.raises(JobFailed):
        await handle.result(10)

    with pytest.raises(JobFailed, match="dead letter under review; settle that first"):
        await (await app.delete(handle.id)).result(10)

    await psql.execute("update forge_dead_letters set status = 'discarded'")
    assert (await (await app.delete(handle.id)).result(10))["done"] == "erased"


async def test_an_attempt_that_is_released_before_it_starts_frees_its_slot(
    app: Forge, work: Work
) -> None:
    @app.job
    async def releases_the_others(ctx: JobContext) -> None:
        for attempt in list(worker.runner.running.values()):
            if attempt.job.id != ctx.job_id:
                worker.held.let_go(attempt.job.id, attempt.job.lease)

    await app.dispatch_many(releases_the_others, [{}] * 5)
    worker = await work(app)

    await until(lambda: worker.held.mean_seconds < 1, 10, "something has run")
    await _running(worker, 0)


async def _running(worker: Any, count: int) -> None:
    await until(lambda: len(worker.runner.running) == count, 10, f"{count} attempts run")


async def _postpone(app: Forge, handle: JobHandle) -> None:
    """Postpone the retry of a job, so that no worker claims it."""
    database = await (await app.session()).database()
    async with database.acquire() as connection:
        await connection.execute(
            "update forge_jobs set scheduled_at = now() + interval '1 hour' where id = $1",
            handle.id,
        )
