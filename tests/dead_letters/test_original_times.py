"""A dead letter keeps the time for which its job was originally scheduled."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forge import Forge, JobContext, JobFailed, Retry, Snooze
from tests.apps import Work, app, make_app, work

__all__ = ["app", "make_app", "work"]


async def test_retries_and_snoozes_keep_the_original_time(app: Forge, work: Work) -> None:
    slept: list[int] = []

    @app.job(retry=Retry(max_attempts=3, backoff="fixed", max_backoff="10ms"))
    async def fail(ctx: JobContext) -> None:
        if not slept:
            slept.append(1)
            raise Snooze("10ms")
        raise ValueError("again")

    await work(app)
    original_time = datetime.now(UTC) - timedelta(minutes=5)
    with pytest.raises(JobFailed):
        await (await fail.dispatch(scheduled_at=original_time)).result(20)

    (letter,) = (await app.dead_letters.list()).items
    assert (letter.original_scheduled_at, letter.attempt_count) == (original_time, 3)


async def test_a_job_that_was_run_early_keeps_its_original_time(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(max_attempts=1)
    async def fail(ctx: JobContext) -> None:
        raise ValueError("at once")

    original_time = datetime.now(UTC) + timedelta(days=1)
    handle = await fail.dispatch(scheduled_at=original_time)
    await work(app)
    await app.run_now(handle.id)
    with pytest.raises(JobFailed):
        await handle.result(20)

    found = "select original_scheduled_at from forge_dead_letters"
    assert await psql.fetchval(found) == original_time
