"""Runs that fail: counted on the row, and run again later each time."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from forge import Forge, NonRetryable, RateLimited, Retry, ScheduleContext, Snooze
from tests.apps import Work
from tests.schedules.conftest import LATER, Until

HOUR = timedelta(hours=1)


async def test_a_failure_is_counted_and_backs_off(app: Forge, work: Work, becomes: Until) -> None:
    @app.schedule("fetch_feed", retry=Retry(backoff="linear", max_backoff="1h"))
    async def fetch_feed(ctx: ScheduleContext) -> None:
        raise ValueError(f"failure {ctx.attempt}")

    await app.schedules.ensure("fetch_feed")
    await work(app)

    row = await becomes("fetch_feed", lambda row: row.consecutive_failures == 2)
    assert row.last_error == "ValueError: failure 2"
    assert row.running_since is None
    assert timedelta(seconds=2) <= row.next_run_at - row.last_run_at < timedelta(seconds=2.3)
    assert [run["outcome"] for run in row.recent_runs] == ["failed", "failed"]


async def test_without_a_declared_retry_a_failure_waits_a_minute_then_two(
    app: Forge, work: Work, becomes: Until
) -> None:
    @app.schedule("fetch_feed", every="1h")
    async def fetch_feed(ctx: ScheduleContext) -> None:
        raise ValueError("no")

    await app.schedules.ensure("fetch_feed")
    await work(app)
    first = await becomes("fetch_feed", lambda row: row.consecutive_failures == 1)
    await app.schedules.run_now("fetch_feed")
    second = await becomes("fetch_feed", lambda row: row.consecutive_failures == 2)

    waits = [row.next_run_at - row.last_run_at for row in (first, second)]
    assert timedelta(seconds=60) <= waits[0] <= timedelta(seconds=66)
    assert timedelta(seconds=120) <= waits[1] <= timedelta(seconds=132)


async def test_success_after_failures_goes_on_with_the_beat(
    app: Forge, work: Work, becomes: Until
) -> None:
    @app.schedule("fetch_feed", every="1h", retry=Retry(max_backoff="1s"))
    async def fetch_feed(ctx: ScheduleContext) -> None:
        if not ctx.is_retry:
            raise ValueError("no")

    made = await app.schedules.ensure("fetch_feed")
    await work(app)

    row = await becomes("fetch_feed", lambda row: row.lease == 2 and row.running_since is None)
    assert (row.consecutive_failures, row.last_error) == (0, None)
    assert row.next_run_at == made.next_run_at + HOUR


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (RateLimited("slow down", retry_after="7m"), timedelta(minutes=7)),
        (Snooze("9m"), timedelta(minutes=9)),
    ],
    ids=["rate limited", "snoozed"],
)
async def test_a_handler_may_be_told_when_to_come_back(
    app: Forge, work: Work, becomes: Until, error: Exception, wait: timedelta
) -> None:
    @app.schedule("fetch_feed", every="1h")
    async def fetch_feed(ctx: ScheduleContext) -> None:
        raise error

    await app.schedules.ensure("fetch_feed")
    await work(app)

    row = await becomes("fetch_feed", lambda row: row.recent_runs)
    assert row.next_run_at - row.updated_at == wait
    assert row.consecutive_failures == (0 if isinstance(error, Snooze) else 1)


async def test_what_another_attempt_cannot_mend_waits_for_the_next_tick(
    app: Forge, work: Work, becomes: Until
) -> None:
    @app.schedule("fetch_feed", every="1h")
    async def fetch_feed(ctx: ScheduleContext) -> None:
        raise NonRetryable("gone")

    made = await app.schedules.ensure("fetch_feed")
    await work(app)

    row = await becomes("fetch_feed", lambda row: row.consecutive_failures == 1)
    assert row.next_run_at == made.next_run_at + HOUR


async def test_a_wrong_answer_is_a_failure(app: Forge, work: Work, becomes: Until) -> None:
    @app.schedule("fetch_feed")
    async def fetch_feed(ctx: ScheduleContext) -> Any:
        return "tomorrow"

    await app.schedules.ensure("fetch_feed")
    await work(app)

    row = await becomes("fetch_feed", lambda row: row.consecutive_failures == 1)
    assert "'tomorrow'; return a datetime with a time zone" in row.last_error


async def test_a_run_past_its_timeout_is_stopped(app: Forge, work: Work, becomes: Until) -> None:
    @app.schedule("slow", timeout="1h")
    async def slow(ctx: ScheduleContext) -> None:
        await asyncio.Event().wait()

    await app.schedules.ensure("slow", timeout="100ms")
    await work(app)

    row = await becomes("slow", lambda row: row.consecutive_failures == 1)
    assert "its timeout of 0:00:00.1" in row.last_error


@pytest.mark.parametrize(
    ("cron", "tz", "message"),
    [
        ("0 3 * * *", "Nowhere/Land", "there is no time zone 'Nowhere/Land'"),
        ("0 3", "UTC", "'0 3' is not a cron expression"),
    ],
)
async def test_a_rule_that_cannot_be_read_here_is_a_failure_and_takes_no_slot(
    app: Forge, work: Work, becomes: Until, psql: Any, cron: str, tz: str, message: str
) -> None:
    @app.schedule("fetch")
    async def fetch(ctx: ScheduleContext) -> None: ...

    await app.schedules.ensure("fetch", next_run_at=LATER)
    written = "update forge_schedules set cron = $1, tz = $2, next_run_at = now()"
    await psql.execute(written, cron, tz)
    worker = await work(app)

    row = await becomes("fetch", lambda row: row.consecutive_failures == 1)

    assert f"its next run cannot be planned: {message}" in (row.last_error or "")
    assert row.running_since is None
    assert not worker.runner.running
