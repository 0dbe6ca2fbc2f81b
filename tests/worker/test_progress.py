"""Progress: clamped, coalesced, reset for each attempt, and never lost at the end."""

import asyncio
import threading
from math import inf
from typing import Any

import pytest

from forge import Cancelled, Forge, JobContext, JobHandle, Retry, StaleAttempt
from tests.apps import Work
from tests.faults.kit.process import until
from tests.worker import handlers


@pytest.mark.parametrize(
    ("given", "stored"), [(-5, 0), (0, 0), (33.9, 33), (100, 100), (250, 100), (inf, 100)]
)
async def test_a_percentage_is_clamped_to_what_there_is(
    app: Forge, work: Work, given: float, stored: int
) -> None:
    go_on = asyncio.Event()

    @app.job
    async def report(ctx: JobContext) -> None:
        ctx.progress(given, "here")
        await go_on.wait()

    await work(app)
    handle = await report.dispatch()

    async for job in handle.updates():
        if job.progress_message:
            break
    assert (job.progress_percent, job.progress_message) == (stored, "here")
    go_on.set()
    await handle.result(10)


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_followers_see_each_step_that_lasts(app: Forge, work: Work, kind: str) -> None:
    steps = [threading.Event() for _ in range(3)]

    async def report(ctx: JobContext) -> None:
        for n, step in enumerate(steps):
            ctx.progress(n * 30, f"step {n}")
            await asyncio.to_thread(step.wait, 20)

    def report_from_thread(ctx: JobContext) -> None:
        for n, step in enumerate(steps):
            ctx.progress(n * 30, f"step {n}")
            step.wait(20)

    definition = app.job(report if kind == "async" else report_from_thread)
    await work(app)
    handle = await definition.dispatch()

    seen: list[Any] = []
    async for job in handle.updates():
        if job.progress_message and job.progress_message not in seen:
            seen.append(job.progress_message)
            steps[len(seen) - 1].set()
    assert seen == ["step 0", "step 1", "step 2"]


async def test_a_tight_loop_of_reports_costs_a_handful_of_writes(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job
    async def busy(ctx: JobContext) -> int:
        for n in range(20_000):
            ctx.progress(n // 200, f"row {n}")
            if n % 1000 == 0:
                await asyncio.sleep(0)  # lets the worker write, as any await does
        return 20_000

    await psql.execute("create extension pg_stat_statements")
    await work(app)
    await psql.execute("select pg_stat_statements_reset()")
    handle = await busy.dispatch()
    await handle.result(20)

    writes = await psql.fetchval(
        "select coalesce(sum(calls), 0) from pg_stat_statements "
        "where query like '%set progress_percent%' and dbid = "
        "(select oid from pg_database where datname = current_database())"
    )
    # One each tenth of a second, and one at the end, where 20,000 were asked for.
    assert 1 <= writes <= 50
    assert (await handle.get()).progress_message == "row 19999"


@pytest.mark.parametrize("ends", ["by returning", "by raising"])
async def test_the_last_report_is_kept_however_soon_the_handler_ends(
    app: Forge, work: Work, ends: str
) -> None:
    @app.job(max_attempts=1)
    async def hurry(ctx: JobContext) -> None:
        ctx.progress(80, "almost")
        if ends == "by raising":
            raise ValueError("no")

    await work(app)
    handle = await hurry.dispatch()
    async for _ in handle.updates():
        pass

    job = await handle.get()
    assert job.progress_message == "almost"
    assert job.progress_percent == (100 if ends == "by returning" else 80)


async def test_progress_starts_again_with_each_attempt(app: Forge, work: Work) -> None:
    @app.job(retry=Retry(max_backoff="10ms"))
    async def twice(ctx: JobContext) -> None:
        if not ctx.is_retry:
            ctx.progress(90, "of the first attempt")
            raise ValueError("again")
        go_on.set()
        await checked.wait()

    go_on, checked = asyncio.Event(), asyncio.Event()
    await work(app)
    handle = await twice.dispatch()
    await asyncio.wait_for(go_on.wait(), 10)

    job = await handle.get()
    assert (job.attempts, job.progress_percent, job.progress_message) == (2, 0, None)
    checked.set()
    await handle.result(10)


@pytest.mark.parametrize("message", ["nul \0", "lone \ud800", "x" * 5000, "", "naïve ✓"])
async def test_no_message_can_harm_the_job(app: Forge, work: Work, message: str) -> None:
    @app.job
    async def report(ctx: JobContext) -> str:
        ctx.progress(10, message)
        return "done"

    await work(app)

    assert await (await report.dispatch()).result(10) == "done"


async def test_reports_of_a_child_process_arrive_too(app: Forge, work: Work) -> None:
    app.register(handlers.report)
    await work(app)
    handle = await handlers.report.dispatch({})

    assert await handle.result(30) == {"done": 30}
    job = await handle.get()
    assert (job.progress_percent, job.progress_message) == (100, "nearly")
    assert job.checkpoint == {"done": 30}


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_heartbeat_is_written_at_once(app: Forge, work: Work, psql: Any, kind: str) -> None:
    beat, go_on = threading.Event(), threading.Event()

    async def live(ctx: JobContext) -> None:
        await ctx.heartbeat()
        beat.set()
        await asyncio.to_thread(go_on.wait, 20)

    def live_in_thread(ctx: JobContext) -> None:
        ctx.heartbeat()
        beat.set()
        go_on.wait(20)

    definition = app.job(live if kind == "async" else live_in_thread)
    await work(app)
    handle = await definition.dispatch()
    await until(beat.is_set, 10, "the heartbeat returned")

    job = await handle.get()
    go_on.set()
    assert job.last_heartbeat is not None
    assert job.claimed_at is not None
    assert job.last_heartbeat >= job.claimed_at
    await handle.result(10)


async def test_a_heartbeat_of_an_attempt_that_lost_its_job_says_so(
    app: Forge, work: Work, psql: Any
) -> None:
    taken, errors = asyncio.Event(), []

    @app.job
    async def live(ctx: JobContext) -> None:
        await taken.wait()
        try:
            await ctx.heartbeat()
        except StaleAttempt as error:
            errors.append(str(error))

    await work(app)
    handle = await live.dispatch()
    await _cancelled_by_hand(handle, psql)
    taken.set()

    await until(lambda: errors, 10, "the handler has noticed")
    assert "lease 1 is over" in errors[0]


async def test_a_thread_that_lost_its_job_does_not_get_past_its_heartbeat(
    app: Forge, work: Work, psql: Any
) -> None:
    taken, errors = threading.Event(), []

    @app.job
    def live(ctx: JobContext) -> None:
        taken.wait(20)
        try:
            ctx.heartbeat()
            errors.append("nothing")
        except (StaleAttempt, Cancelled) as error:  # whichever reaches the thread first
            errors.append(type(error).__name__)

    await work(app)
    handle = await live.dispatch()
    await _cancelled_by_hand(handle, psql)
    taken.set()

    await until(lambda: errors, 10, "the handler has noticed")
    assert errors[0] in ("StaleAttempt", "Cancelled")


async def _cancelled_by_hand(handle: JobHandle, psql: Any) -> None:
    async for job in handle.updates():
        if job.status == "running":
            break
    await psql.execute("update forge_jobs set status = 'cancelled' where id = $1", handle.id)
