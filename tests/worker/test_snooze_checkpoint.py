"""Snoozing gives a job back without using an attempt; a checkpoint is found by the next one."""

import asyncio
from typing import Any

import pytest

from forge import Forge, InvalidPayload, JobContext, JobFailed, Retry, Snooze
from tests.apps import Work


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_snoozed_job_waits_without_having_used_an_attempt(
    app: Forge, work: Work, psql: Any, kind: str
) -> None:
    async def later(ctx: JobContext) -> None:
        raise Snooze("5m")

    def later_in_thread(ctx: JobContext) -> None:
        raise Snooze("5m")

    definition = app.job(later if kind == "async" else later_in_thread)
    await work(app)
    handle = await definition.dispatch()

    async for job in handle.updates():
        if job.lease and job.status == "pending":
            break

    assert (job.attempts, job.lease, job.last_error) == (0, 1, None)
    assert job.started_at is not None
    waits = (job.scheduled_at - job.started_at).total_seconds()
    assert 300 <= waits < 330
    assert await psql.fetchval("select count(*) from forge_attempts") == 0


async def test_a_job_may_snooze_more_often_than_it_has_attempts(app: Forge, work: Work) -> None:
    calls: list[int] = []

    @app.job(max_attempts=1)
    async def patient(ctx: JobContext) -> str:
        calls.append(ctx.attempt)
        if len(calls) < 4:
            raise Snooze("10ms")
        return "ready"

    await work(app)

    assert await (await patient.dispatch()).result(10) == "ready"
    assert calls == [1, 1, 1, 1]


@pytest.mark.parametrize("delay", ["0s", "-1s", "later", None])
def test_a_snooze_for_no_time_at_all_is_refused(delay: Any) -> None:
    with pytest.raises(ValueError, match=r"Snooze\(delay\)"):
        Snooze(delay)


@pytest.mark.parametrize("ends", ["by an error", "by snoozing"])
async def test_the_next_attempt_finds_the_checkpoint(app: Forge, work: Work, ends: str) -> None:
    @app.job(retry=Retry(max_backoff="10ms"))
    async def resume(ctx: JobContext) -> Any:
        if ctx.checkpoint is not None:
            return ctx.checkpoint
        ctx.checkpoint = {"page": 7}
        assert ctx.checkpoint == {"page": 7}
        raise ValueError("again") if ends == "by an error" else Snooze("10ms")

    await work(app)

    assert await (await resume.dispatch()).result(10) == {"page": 7}


async def test_a_checkpoint_is_in_the_database_while_the_attempt_still_runs(
    app: Forge, work: Work
) -> None:
    go_on = asyncio.Event()

    @app.job
    async def slow(ctx: JobContext) -> None:
        ctx.checkpoint = [1, 2, 3]
        await go_on.wait()

    await work(app)
    handle = await slow.dispatch()
    async for job in handle.updates():
        if job.checkpoint:
            break

    assert (job.status, job.checkpoint) == ("running", [1, 2, 3])
    go_on.set()
    await handle.result(10)


async def test_a_checkpoint_can_be_taken_back(app: Forge, work: Work) -> None:
    @app.job(retry=Retry(max_backoff="10ms"))
    async def resume(ctx: JobContext) -> list[Any]:
        if ctx.attempt == 1:
            ctx.checkpoint = {"page": 7}
            raise ValueError("again")
        if ctx.attempt == 2:
            ctx.checkpoint = None
            raise ValueError("again")
        return [ctx.checkpoint]

    await work(app)

    assert await (await resume.dispatch()).result(10) == [None]


@pytest.mark.parametrize("value", [{"x": float("nan")}, "x" * 100_000, {1, 2}])
async def test_a_checkpoint_that_cannot_be_stored_is_an_error_in_the_handler(
    app: Forge, work: Work, value: Any
) -> None:
    refused: list[str] = []

    @app.job(max_attempts=1)
    async def keep(ctx: JobContext) -> None:
        try:
            ctx.checkpoint = value
        except InvalidPayload as error:
            refused.append(str(error))
            raise

    await work(app)

    with pytest.raises(JobFailed, match="the checkpoint"):
        await (await keep.dispatch()).result(10)
    assert refused
