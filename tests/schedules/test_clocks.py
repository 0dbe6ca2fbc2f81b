"""Clocks that are wrong: a worker's own does not matter, the database's is stepped over."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from forge import Forge, ScheduleContext
from tests.apps import Work
from tests.schedules.conftest import Until

HOUR = timedelta(hours=1)
# The clock of the database cannot be set by a test; but what it was set over is all in the row.
STEP = "update forge_schedules set next_run_at = next_run_at - $1::interval"


@pytest.mark.parametrize("ahead", [-HOUR, HOUR], ids=["an hour behind", "an hour ahead"])
async def test_a_worker_whose_clock_is_wrong_runs_everything_at_its_time(
    app: Forge, work: Work, becomes: Until, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    """Fault 28."""
    seconds, right = ahead.total_seconds(), (time.time, time.time_ns)
    monkeypatch.setattr(time, "time", lambda: right[0]() + seconds)
    monkeypatch.setattr(time, "time_ns", lambda: right[1]() + int(seconds * 1e9))

    @app.schedule("tick")
    async def tick(ctx: ScheduleContext) -> timedelta | None:
        return HOUR if ctx.schedule.key == "span" else None

    soon = datetime.now(UTC) + timedelta(minutes=30)
    await app.schedules.ensure(tick, "later", next_run_at=soon)
    await app.schedules.ensure(tick, "span")
    await app.schedules.ensure(tick, "rule", every="1h")
    made = await app.schedules.ensure(tick, "clock", cron="* * * * * *")
    await work(app)

    span = await becomes("tick", lambda row: row.last_run_at, "span")
    rule = await becomes("tick", lambda row: row.last_run_at, "rule")
    clock = await becomes("tick", lambda row: row.lease >= 2, "clock")
    later = await app.schedules.get("tick", "later")

    assert span.next_run_at - span.last_run_at == HOUR
    assert rule.next_run_at - rule.created_at == HOUR
    assert clock.next_run_at - made.next_run_at < timedelta(minutes=1)
    assert (later.lease, later.next_run_at) == (0, soon)
    runs = [run for row in (span, rule, clock) for run in row.recent_runs]
    assert all(run["due_at"] <= run["started_at"] <= run["ended_at"] for run in runs)


@pytest.mark.parametrize(
    ("missed", "outcomes"),
    [("once", ["completed"]), ("skip", ["skipped"]), ("all", 7 * ["completed"])],
)
async def test_an_hour_that_nobody_was_there_for_is_made_up_for_as_the_policy_says(
    app: Forge, work: Work, becomes: Until, psql: "asyncpg.Connection[Any]",
    missed: str, outcomes: list[str],
) -> None:  # fmt: skip
    """Fault 31; a clock that was set forward by an hour looks the same."""

    @app.schedule("tick", every="10m")
    async def tick(ctx: ScheduleContext) -> None: ...

    await app.schedules.ensure(tick, missed=missed)
    await psql.execute(STEP, HOUR)
    await work(app)

    row = await becomes("tick", lambda row: row.next_run_at > row.updated_at)
    assert [run["outcome"] for run in row.recent_runs] == outcomes
    dues = [datetime.fromisoformat(run["due_at"]) for run in reversed(row.recent_runs)]
    first = row.created_at - HOUR
    assert dues == [first + n * timedelta(minutes=10) for n in range(len(outcomes))]
    assert row.next_run_at == first + 7 * timedelta(minutes=10)


async def test_a_clock_that_is_set_back_brings_no_tick_twice(
    app: Forge, work: Work, becomes: Until, psql: "asyncpg.Connection[Any]"
) -> None:
    @app.schedule("tick", every="1h")
    async def tick(ctx: ScheduleContext) -> None: ...

    @app.schedule("other")
    async def other(ctx: ScheduleContext) -> timedelta:
        return HOUR

    await app.schedules.ensure(tick)
    await work(app)
    planned = (await becomes("tick", lambda row: row.last_run_at)).next_run_at
    await psql.execute(STEP, -HOUR)
    await app.schedules.ensure(other)  # by which the worker has looked again

    await becomes("other", lambda row: row.last_run_at)
    row = await app.schedules.get("tick")
    assert (row.lease, row.next_run_at) == (1, planned + HOUR)
