"""Expiry: a job does not run after its expires_at."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forge import Forge, JobContext, JobFailed
from tests.apps import Work


async def test_a_job_that_expired_before_it_could_run_is_buried_unrun(
    app: Forge, work: Work, psql: Any
) -> None:
    ran: list[str] = []

    @app.job
    async def offer(ctx: JobContext) -> None:
        ran.append("ran")

    handle = await offer.dispatch(expires_at=datetime.now(UTC) - timedelta(minutes=1))
    await work(app)

    with pytest.raises(JobFailed, match="ended as dead_letter: expired before it could run"):
        await handle.result(10)
    assert ran == []
    assert (await handle.get()).error_class == "non_retryable"
    assert await psql.fetchval("select exception from forge_dead_letters") == "forge.Expired"


async def test_an_expired_job_without_dead_letter_ends_as_failed(app: Forge, work: Work) -> None:
    @app.job(dead_letter=False)
    async def offer(ctx: JobContext) -> None: ...

    handle = await offer.dispatch(expires_at=datetime.now(UTC) - timedelta(minutes=1))
    await work(app)

    with pytest.raises(JobFailed, match="ended as failed: expired"):
        await handle.result(10)


async def test_a_job_that_has_not_expired_runs(app: Forge, work: Work) -> None:
    @app.job
    async def offer(ctx: JobContext) -> str:
        return "ran"

    handle = await offer.dispatch(expires_at=datetime.now(UTC) + timedelta(minutes=5))
    await work(app)

    assert await handle.result(10) == "ran"


async def test_a_job_may_expire_between_two_attempts(app: Forge, work: Work, psql: Any) -> None:
    attempts: list[int] = []

    @app.job
    async def offer(ctx: JobContext) -> None:
        attempts.append(ctx.attempt)
        raise ValueError("not yet")

    await work(app)
    handle = await offer.dispatch(expires_at=datetime.now(UTC) + timedelta(minutes=5))
    async for job in handle.updates():
        if job.status == "retry":
            break
    await psql.execute("update forge_jobs set expires_at = now() - interval '1 second'")

    with pytest.raises(JobFailed, match="expired before it could run"):
        await handle.result(10)
    assert attempts == [1]
