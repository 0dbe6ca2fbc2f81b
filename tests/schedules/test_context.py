"""The context of a run: a job's context whose job is the schedule."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from forge import Forge, ScheduleContext, StaleAttempt
from tests.apps import Work
from tests.faults.kit.process import until
from tests.schedules.conftest import Until
from tests.schedules.handlers import completes, dies, in_child, where

HOUR = timedelta(hours=1)


async def test_a_plain_function_runs_in_a_thread(app: Forge, work: Work, becomes: Until) -> None:
    @app.schedule("tick")
    def tick(ctx: ScheduleContext, payload: dict) -> timedelta:
        ctx.heartbeat()
        ctx.progress(10, threading.current_thread().name)
        return HOUR

    await app.schedules.ensure("tick")
    await work(app)

    row = await becomes("tick", lambda row: row.last_run_at)
    assert row.recent_runs[0]["message"].startswith("forge-handler")
    assert row.next_run_at - row.last_run_at == HOUR


async def test_a_run_in_a_child_process_knows_its_schedule(
    app: Forge, work: Work, becomes: Until
) -> None:
    app.register(in_child)
    await app.schedules.ensure(in_child, "42", {"n": [1]})
    await work(app)

    row = await becomes("in_child", lambda row: row.last_run_at, "42")
    pid, *rest = row.recent_runs[0]["message"].split()
    assert int(pid) != os.getpid()
    assert rest == ["42", "True"]
    assert row.checkpoint == {"runs": 1}
    assert row.next_run_at - row.last_run_at == HOUR


async def test_a_child_that_dies_is_a_failure_and_backs_off(
    app: Forge, work: Work, becomes: Until
) -> None:
    app.register(dies)
    await app.schedules.ensure(dies)
    await work(app)

    row = await becomes("dies", lambda row: row.consecutive_failures == 1)
    assert "its process died while it ran: exit code 3" in row.last_error
    assert (row.crashes, row.recent_runs[0]["outcome"]) == (1, "crashed")
    assert row.next_run_at - row.last_run_at >= timedelta(seconds=60)


@pytest.mark.parametrize("suspect", [False, True])
async def test_a_suspect_runs_alone_in_a_child(
    app: Forge, work: Work, becomes: Until, psql: "asyncpg.Connection[Any]", suspect: bool
) -> None:
    """What was running when its worker died may have killed it."""
    app.register(where)
    await app.schedules.ensure(where)
    await psql.execute("update forge_schedules set crashes = 1, suspect = $1", suspect)

    await work(app)

    row = await becomes("where", lambda row: row.last_run_at)
    assert (int(row.recent_runs[0]["message"]) != os.getpid()) == suspect
    assert (row.crashes, row.suspect) == (0, False)


async def test_the_next_run_finds_the_checkpoint(app: Forge, work: Work, becomes: Until) -> None:
    found: list[Any] = []

    @app.schedule("tick", every="10ms")
    async def tick(ctx: ScheduleContext) -> None:
        found.append(ctx.checkpoint)
        ctx.checkpoint = len(found)
        if len(found) == 2:
            raise ValueError("kept also by a failure")

    await app.schedules.ensure("tick")
    await work(app)
    await becomes("tick", lambda row: len(found) >= 3)

    assert found[:3] == [None, 1, 2]


async def test_a_heartbeat_writes_the_checkpoint_and_is_refused_to_who_lost_the_run(
    app: Forge, work: Work, becomes: Until, psql: "asyncpg.Connection[Any]"
) -> None:
    beaten, lost, stale = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.schedule("tick")
    async def tick(ctx: ScheduleContext) -> timedelta:
        if ctx.lease > 1:
            return HOUR
        ctx.checkpoint = "half"
        await ctx.heartbeat()
        beaten.set()
        await lost.wait()
        ctx.lived_at = 0  # as if half a second had passed
        try:
            await ctx.heartbeat()
        except StaleAttempt:
            stale.set()
            raise
        return HOUR

    await app.schedules.ensure("tick")
    await work(app)
    await beaten.wait()
    row = await app.schedules.get("tick")
    assert (row.checkpoint, row.last_heartbeat is not None) == ("half", True)
    await psql.execute("update forge_schedules set running_since = null, lease = lease + 1")
    lost.set()

    await asyncio.wait_for(stale.wait(), 10)
    row = await becomes("tick", lambda row: row.last_run_at)
    assert (row.consecutive_failures, row.lease) == (0, 3)


@pytest.mark.parametrize("isolation", ["loop", "process"])
async def test_effects_and_the_end_of_the_run_are_committed_together(
    app: Forge, work: Work, becomes: Until, psql: "asyncpg.Connection[Any]", isolation: str
) -> None:
    await psql.execute("create table effects (n bigint)")

    @app.schedule("in_loop")
    async def in_loop(ctx: ScheduleContext) -> None:
        async with ctx.complete_in_transaction(HOUR) as conn:
            await conn.execute("insert into effects values ($1)", ctx.schedule.lease)
            row = await conn.fetchrow("select running_since from forge_schedules")
            assert row["running_since"] is not None

    app.register(completes)
    name = "in_loop" if isolation == "loop" else "completes"
    await app.schedules.ensure(name)
    await work(app)

    row = await becomes(name, lambda row: row.last_run_at)
    assert row.next_run_at - row.last_run_at == HOUR
    assert [effect["n"] for effect in await psql.fetch("select n from effects")] == [1]
    assert [run["outcome"] for run in row.recent_runs] == ["completed"]


async def test_a_lost_run_cannot_commit_its_effects(
    app: Forge, work: Work, becomes: Until, psql: "asyncpg.Connection[Any]"
) -> None:
    await psql.execute("create table effects (n bigint)")
    refused: list[BaseException] = []

    @app.schedule("tick")
    async def tick(ctx: ScheduleContext) -> timedelta:
        if ctx.lease == 1:
            await psql.execute("update forge_schedules set running_since = null, lease = 2")
            try:
                async with ctx.complete_in_transaction() as conn:
                    await conn.execute("insert into effects values (1)")
            except (StaleAttempt, asyncio.CancelledError) as error:  # the next run stops it
                refused.append(error)
        return HOUR

    await app.schedules.ensure("tick")
    await work(app)

    await becomes("tick", lambda row: row.last_run_at)
    await until(lambda: refused, 10, "the lost run is refused")
    assert len(refused) == 1
    assert await psql.fetchval("select count(*) from effects") == 0


async def test_middleware_wraps_runs_and_sees_what_they_return(
    app: Forge, work: Work, becomes: Until
) -> None:
    seen: list[Any] = []

    @app.middleware
    async def wrap(ctx: Any, call_next: Callable[[], Awaitable[Any]]) -> Any:
        seen.append((ctx.job_type, answer := await call_next()))
        return answer

    @app.schedule("tick")
    async def tick(ctx: ScheduleContext) -> timedelta:
        return HOUR

    await app.schedules.ensure("tick")
    await work(app)

    await becomes("tick", lambda row: row.last_run_at)
    assert seen == [("tick", HOUR)]


async def test_a_run_may_dispatch_jobs(app: Forge, work: Work) -> None:
    done = asyncio.Event()

    @app.job
    async def follow_up(ctx: Any, input: dict) -> None:
        done.set()

    @app.schedule("tick")
    async def tick(ctx: ScheduleContext) -> None:
        await follow_up.dispatch({"from": ctx.schedule.key})

    await app.schedules.ensure("tick", "7")
    await work(app)

    await asyncio.wait_for(done.wait(), 10)


async def test_a_schedule_is_never_dispatched_as_a_job(app: Forge) -> None:
    @app.schedule("tick")
    async def tick(ctx: ScheduleContext) -> None: ...

    with pytest.raises(ValueError, match=r"app\.schedules\.run_now\('tick'\)"):
        await tick.dispatch()
    with pytest.raises(ValueError, match=r"app\.schedules\.run_now\('tick'\)"):
        await app.dispatch(tick)
