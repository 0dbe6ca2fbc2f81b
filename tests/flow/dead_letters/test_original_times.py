"""A dead letter has the time that its job was dispatched for, whatever moved it since."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forge import Forge, JobContext, JobFailed, Retry, Snooze
from tests.flow.engine.conftest import Work, app, make_app, work

__all__ = ["app", "make_app", "work"]


async def test_retries_and_snoozes_leave_the_original_time(app: Forge, work: Work) -> None:
    slept: list[int] = []

    @app.job(retry=Retry(max_attempts=3, backoff="fixed", max_backoff="10ms"))
    async def fail(ctx: JobContext) -> None:
        if not slept:
            slept.append(1)
            raise Snooze("10ms")
        raise ValueError("again")

    await work(app)
    asked_for = datetime.now(UTC) - timedelta(minutes=5)
    with pytest.raises(JobFailed):
        await (await fail.dispatch(scheduled_at=asked_for)).result(20)

    (letter,) = (await app.dead_letters.list()).items
    assert (letter.original_scheduled_at, letter.attempt_count) == (asked_for, 3)


async def test_a_job_that_was_run_early_has_its_original_time(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(max_attempts=1)
    async def fail(ctx: JobContext) -> None:
        raise ValueError("at once")

    asked_for = datetime.now(UTC) + timedelta(days=1)
    handle = await fail.dispatch(scheduled_at=asked_for)
    await work(app)
    await app.run_now(handle.id)
    with pytest.raises(JobFailed):
        await handle.result(20)

    found = "select original_scheduled_at from forge_dead_letters"
    assert await psql.fetchval(found) == asked_for
