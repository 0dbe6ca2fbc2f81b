"""Running: the row is claimed, its handler runs, and the same row says what came of it."""

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import asyncpg

from forge import Forge, ScheduleContext
from forge.core.events import AttemptEnded, Event
from forge.core.outcome import Completion
from tests.apps import MakeApp, Work
from tests.schedules.conftest import LATER, Until

HOUR = timedelta(hours=1)


async def test_a_schedule_runs_at_once_and_then_when_its_handler_says(
    app: Forge, work: Work, becomes: Until
) -> None:
    seen: list[Any] = []

    @app.schedule("fetch_feed")
    async def fetch_feed(ctx: ScheduleContext, payload: dict) -> datetime:
        seen.append((ctx.job_id, ctx.job_type, ctx.attempt, payload, ctx.schedule.key))
        return LATER

    made = await app.schedules.ensure("fetch_feed", "42", {"feed_id": 42})
    await work(app)

    row = await becomes("fetch_feed", lambda row: row.last_run_at, "42")
    assert seen == [(made.id, "fetch_feed", 1, {"feed_id": 42}, "42")]
    assert row.id == made.id
    assert row.next_run_at == LATER
    assert (row.running_since, row.last_error, row.consecutive_failures) == (None, None, 0)
    assert (row.enabled, row.lease) == (True, 1)
    (run,) = row.recent_runs
    assert (run["outcome"], run["lease"]) == ("completed", 1)


async def test_a_span_counts_from_the_end_of_the_run(
    app: Forge, work: Work, becomes: Until
) -> None:
    @app.schedule("fetch_feed")
    async def fetch_feed(ctx: ScheduleContext, payload: dict) -> timedelta:
        return HOUR

    await app.schedules.ensure(fetch_feed, "42")
    await work(app)

    row = await becomes("fetch_feed", lambda row: row.last_run_at, "42")
    assert row.next_run_at - row.last_run_at == HOUR


async def test_a_run_every_so_often_keeps_its_beat(app: Forge, work: Work, becomes: Until) -> None:
    runs: list[datetime] = []

    @app.schedule("tick", every="200ms")
    async def tick(ctx: ScheduleContext) -> None:
        runs.append(ctx.schedule.next_run_at)

    await app.schedules.ensure("tick")
    await work(app)
    await becomes("tick", lambda row: row.lease >= 5)

    steps = [(later - earlier) / timedelta(milliseconds=200) for earlier, later in pairwise(runs)]
    assert all(step >= 1 and step == int(step) for step in steps)


async def test_without_a_rule_and_without_an_answer_nothing_is_planned(
    app: Forge, work: Work, becomes: Until
) -> None:
    @app.schedule("once")
    async def once(ctx: ScheduleContext) -> None:
        pass

    await app.schedules.ensure("once")
    await work(app)

    row = await becomes("once", lambda row: row.last_run_at)
    assert row.next_run_at is None
    assert (await app.schedules.ensure("once")).next_run_at is not None
    await becomes("once", lambda row: row.lease == 2)


async def test_disabling_during_a_run_lets_the_run_finish(
    app: Forge, work: Work, becomes: Until
) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()

    @app.schedule("slow", every="10ms")
    async def slow(ctx: ScheduleContext) -> None:
        began.set()
        await may_end.wait()

    await app.schedules.ensure("slow")
    await work(app)
    await began.wait()
    disabled = await app.schedules.disable("slow")
    may_end.set()

    row = await becomes("slow", lambda row: row.running_since is None)
    assert disabled.running_since is not None
    assert (row.enabled, row.last_error, row.recent_runs[0]["outcome"]) == (
        False,
        None,
        "completed",
    )
    assert row.lease == 1


async def test_what_is_moved_during_its_run_keeps_its_new_time(
    app: Forge, work: Work, becomes: Until
) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()

    @app.schedule("slow")
    async def slow(ctx: ScheduleContext) -> timedelta:
        began.set()
        await may_end.wait()
        return HOUR

    await app.schedules.ensure("slow")
    await work(app)
    await began.wait()
    await app.schedules.run_now("slow")
    may_end.set()

    row = await becomes("slow", lambda row: row.lease == 2 and row.running_since is None)
    assert row.next_run_at - row.last_run_at == HOUR


async def test_run_now_leaves_the_next_tick_in_its_place(
    app: Forge, work: Work, becomes: Until
) -> None:
    @app.schedule("report", every="1d")
    async def report(ctx: ScheduleContext) -> None:
        pass

    await app.schedules.ensure("report", next_run_at=LATER)
    await work(app)
    await app.schedules.run_now("report")

    row = await becomes("report", lambda row: row.last_run_at)
    assert (row.next_run_at, row.tick_at) == (LATER, None)


async def test_runs_emit_the_events_of_attempts(app: Forge, work: Work, becomes: Until) -> None:
    events: list[Event] = []
    app.events.listeners.append(events.append)

    @app.schedule("tick")
    async def tick(ctx: ScheduleContext) -> timedelta:
        return HOUR

    made = await app.schedules.ensure("tick", tenant_id=7)
    await work(app)
    await becomes("tick", lambda row: row.last_run_at, tenant_id=7)

    (ended,) = [event for event in events if isinstance(event, AttemptEnded)]
    assert (ended.job.id, ended.job.type, ended.job.tenant_id) == (made.id, "tick", 7)
    assert isinstance(ended.ack, Completion)


async def test_an_app_without_schedules_sends_no_statement_about_them(
    make_app: MakeApp, work: Work, psql: "asyncpg.Connection[Any]"
) -> None:
    await psql.execute("create extension if not exists pg_stat_statements")
    await psql.execute("select pg_stat_statements_reset()")
    app = make_app()

    @app.job
    async def job(ctx: Any) -> None:
        pass

    await work(app)
    await (await app.dispatch(job)).result(timeout=10)

    asked = await psql.fetch(
        "select query from pg_stat_statements join pg_database on oid = dbid "
        "where datname = current_database()"
    )
    assert asked
    # The heartbeat asks for runs of its own where the app has schedules.
    others = [row["query"] for row in asked if "insert into forge_workers" not in row["query"]]
    assert not [query for query in others if "forge_schedules" in query]
