"""run_all, run_one and advance: the worker's own parts, until nothing is left to do."""

import asyncio
from typing import Any

import pytest

from forge import Forge, JobContext, JobFailed, Retry, Snooze, Status
from forge.testing import advance, run_all, run_one
from forge.testing.runs import NotIdle
from tests.apps import MakeApp


async def test_it_runs_what_is_due_and_what_that_dispatches(app: Forge) -> None:
    @app.job
    async def parent(ctx: JobContext, input: dict[str, Any]) -> None:
        for n in range(3):
            await child.dispatch({"n": n})

    @app.job
    def child(ctx: JobContext, input: dict[str, Any]) -> int:
        return int(input["n"]) * 2

    handle = await parent.dispatch({})
    later = await child.dispatch({"n": 5}, delay="1h")

    summary = await run_all(app)

    assert summary.completed == 4
    assert summary.count("completed", "child") == 3
    assert (await handle.get()).status is Status.COMPLETED
    assert (await later.get()).status is Status.PENDING


async def test_it_retries_at_once_and_raises_the_error_of_the_handler(app: Forge) -> None:
    tries: list[int] = []

    @app.job(retry=Retry(max_attempts=3))
    async def fails(ctx: JobContext) -> None:
        tries.append(ctx.attempt)
        raise LookupError("no such user")

    handle = await fails.dispatch()

    with pytest.raises(LookupError, match="no such user") as raised:
        await run_all(app)

    assert tries == [1, 2, 3]
    assert (await handle.get()).status is Status.DEAD_LETTER
    assert any("attempt 3: dead_letter" in note for note in raised.value.__notes__)


async def test_it_returns_failures_when_it_is_asked_not_to_raise(app: Forge) -> None:
    @app.job(max_attempts=2, dead_letter=False)
    def fails(ctx: JobContext) -> None:
        raise LookupError("no such user")

    await fails.dispatch()

    summary = await run_all(app, raises=False)

    assert (summary.retried, summary.failed) == (1, 1)
    assert isinstance(summary.failures[0].error, LookupError)
    assert str(summary) == "fails retry 1×, fails failed 1×"


async def test_delays_schedules_and_snoozes_come_due_when_time_is_advanced(app: Forge) -> None:
    ran: list[str] = []

    @app.job
    async def later(ctx: JobContext) -> None:
        ran.append("later")
        if ran.count("later") == 1:
            raise Snooze("3h")

    @app.schedule("hourly", every="1h")
    async def hourly(ctx: Any) -> None:
        ran.append("hourly")

    await app.schedules.ensure("hourly", "a")
    await run_all(app)
    ran.clear()
    await later.dispatch(delay="2h")
    assert (await run_all(app)).attempts == ()

    await advance(app, "2h")
    summary = await run_all(app)
    assert sorted(ran) == ["hourly", "later"]
    assert summary.count("snoozed") == 1

    await advance(app, "3h")
    await run_all(app)
    assert sorted(ran) == ["hourly", "hourly", "later", "later"]


async def test_run_one_runs_this_job_alone_and_returns_its_result(app: Forge) -> None:
    @app.job
    async def double(ctx: JobContext, input: dict[str, Any]) -> int:
        if ctx.attempt == 1:
            raise ConnectionError("away")
        await double.dispatch({"n": 0})
        return int(input["n"]) * 2

    other = await double.dispatch({"n": 1})
    handle = await double.dispatch({"n": 21})

    assert await run_one(handle) == 42
    assert (await other.get()).status is Status.PENDING


async def test_run_one_says_why_a_job_cannot_run(app: Forge) -> None:
    @app.job
    async def later(ctx: JobContext) -> None: ...

    handle = await later.dispatch(delay="2h")

    with pytest.raises(Exception, match="advance"):
        await run_one(handle)

    await advance(app, "2h")
    await run_one(handle)
    cancelled = await later.dispatch(delay="2h")  # or it could run before the request does
    await cancelled.cancel()
    await run_all(app)
    with pytest.raises(JobFailed, match="cancelled"):
        await run_one(cancelled)


async def test_a_drain_that_does_not_end_names_what_runs(app: Forge) -> None:
    @app.job
    async def waits(ctx: JobContext) -> None:
        await asyncio.Event().wait()

    handle = await waits.dispatch()

    with pytest.raises(NotIdle, match=r"waits \(1\) still ran here"):
        await run_all(app, timeout=0.3)

    assert (await handle.get()).status is Status.PENDING


async def test_capabilities_queues_and_processes_run_too(make_app: MakeApp) -> None:
    from tests.testing.shop import shop

    shop.configure(make_app().config, database_url=make_app().database_url)
    async with shop:
        handle = await shop.dispatch("resize", {"width": 3}, queue="media")
        assert await run_one(handle) == {"width": 3, "is_child": True}
        await shop.dispatch("resize", {"width": 3}, queue="media")
        assert (await run_all(shop)).completed == 1
