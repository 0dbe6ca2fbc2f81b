"""Times: a job runs when it is due, not before, and without waiting for a poll."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from forge import Forge, InvalidValue, JobContext, JobHandle, Retry
from tests.apps import MakeApp, Work

# No test waits so long for a result: what comes earlier did not come by polling.
SELDOM = {"poll_interval": "10m", "idle_poll_interval": "10m"}


async def test_a_delay_counts_from_now_by_the_clock_of_the_database(app: Forge, psql: Any) -> None:
    handle = await _ping(app, delay="90s")

    assert (await handle.get()).status == "pending"
    assert await psql.fetchval("select scheduled_at - created_at from forge_jobs") == timedelta(
        seconds=90
    )


@pytest.mark.parametrize("way", ["delay", "scheduled_at"])
async def test_a_job_runs_when_it_is_due_and_not_before(app: Forge, work: Work, way: str) -> None:
    _define(app)
    await work(app)
    options: dict[str, Any] = (
        {"delay": "300ms"}
        if way == "delay"
        else {"scheduled_at": datetime.now(UTC) + timedelta(milliseconds=300)}
    )
    handle = await _ping(app, **options)

    await handle.result(10)
    job = await handle.get()
    assert job.started_at is not None
    assert job.started_at >= job.scheduled_at


async def test_an_idle_worker_wakes_for_the_next_job_that_is_due(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(**SELDOM)
    _define(app)
    await work(app)

    assert await (await _ping(app, delay="400ms")).result(20) == "pong"


async def test_a_worker_that_starts_finds_when_the_next_job_is_due(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(**SELDOM)
    later, sooner = await _ping(app, delay="1h"), await _ping(app, delay="400ms")
    await work(app)

    assert await sooner.result(20) == "pong"
    assert (await later.get()).status == "pending"


async def test_a_retry_is_taken_when_it_is_due_without_a_poll(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(**SELDOM)

    @app.job(retry=Retry(max_backoff="200ms"))
    async def twice(ctx: JobContext) -> int:
        if not ctx.is_retry:
            raise ValueError("again")
        return ctx.attempt

    await work(app)

    assert await (await twice.dispatch()).result(20) == 2


async def test_an_idle_worker_hears_of_a_new_job(make_app: MakeApp, work: Work) -> None:
    app = make_app(**SELDOM)
    _define(app)
    await work(app)
    assert await (await _ping(app)).result(20) == "pong"

    assert await (await _ping(app)).result(20) == "pong"


async def test_a_time_that_has_passed_means_at_once(app: Forge, work: Work) -> None:
    handle = await _ping(app, scheduled_at=datetime(1999, 12, 31, tzinfo=UTC))
    await work(app)

    assert await handle.result(10) == "pong"


async def test_a_time_in_another_zone_is_the_same_moment(app: Forge) -> None:
    at = datetime(2131, 6, 1, 12, 0, tzinfo=timezone(timedelta(hours=5, minutes=30)))

    handle = await _ping(app, scheduled_at=at)

    assert (await handle.get()).scheduled_at == at


async def test_a_job_has_a_time_or_a_delay_and_not_both(app: Forge, psql: Any) -> None:
    with pytest.raises(InvalidValue, match="either scheduled_at or delay"):
        await _ping(app, scheduled_at=datetime.now(UTC), delay="1s")

    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_many_dispatched_with_a_delay_wait_together(app: Forge, psql: Any) -> None:
    _define(app)

    await app.dispatch_many("ping", [{}, {}], delay="1h")

    waits = await psql.fetch("select distinct scheduled_at - created_at as wait from forge_jobs")
    assert [row["wait"] for row in waits] == [timedelta(hours=1)]


def _define(app: Forge) -> None:
    if "ping" not in app.definitions:

        @app.job
        async def ping(ctx: JobContext) -> str:
            return "pong"


async def _ping(app: Forge, **options: Any) -> JobHandle:
    _define(app)
    return await app.dispatch("ping", **options)
