"""Results: waiting for a job, following it, and errors when it fails."""

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest

from forge import (
    Forge,
    JobContext,
    JobFailed,
    JobRecord,
    NonRetryable,
    ResultTimeout,
    Retry,
    UnknownJob,
)
from tests.apps import MakeApp, Work


async def test_a_result_is_the_return_value_of_the_handler(app: Forge, work: Work) -> None:
    handle = await app.dispatch(_echo(app), {"a": [1]})
    await work(app)

    assert await handle.result(10) == {"a": [1]}
    assert await handle.result() == {"a": [1]}


async def test_many_callers_can_wait_for_one_job(app: Forge, work: Work) -> None:
    handle = await app.dispatch(_echo(app), {"n": 1})
    waiting = [asyncio.create_task(handle.result(20)) for _ in range(5)]
    await work(app)

    assert await asyncio.gather(*waiting) == [{"n": 1}] * 5


async def test_another_process_can_wait_by_id(make_app: MakeApp, work: Work) -> None:
    app, elsewhere = make_app(), make_app()
    handle = await app.dispatch(_echo(app), {"n": 1})
    await work(app)

    assert await elsewhere.handle(handle.id).result(10) == {"n": 1}


@pytest.mark.parametrize("timeout", [0.05, timedelta(milliseconds=50)])
async def test_a_timeout_error_says_what_to_check(app: Forge, timeout: float | timedelta) -> None:
    handle = await app.dispatch(_echo(app), {})

    with pytest.raises(ResultTimeout, match=r"not done within 0\.05 s; it goes on"):
        await handle.result(timeout)
    assert (await handle.get()).status == "pending"


async def test_a_failed_job_raises_with_the_last_error(app: Forge, work: Work) -> None:
    @app.job
    async def fail(ctx: JobContext) -> None:
        raise NonRetryable("no such user")

    await work(app)
    handle = await fail.dispatch()

    with pytest.raises(JobFailed) as failed:
        await handle.result(10)
    message = str(failed.value)
    assert f"fail {handle.id} ended as dead_letter: no such user" in message
    assert f"forge jobs show {handle.id}" in message


async def test_an_unknown_job_raises_immediately(app: Forge) -> None:
    with pytest.raises(UnknownJob, match="deleted or pruned"):
        await app.handle(uuid4()).result(10)


async def test_updates_start_with_the_current_state_and_end_with_the_final_one(
    app: Forge, work: Work
) -> None:
    @app.job(retry=Retry(max_backoff="1s"))  # long enough to be seen on a busy machine
    async def twice(ctx: JobContext) -> str:
        ctx.progress(50, f"attempt {ctx.attempt}")
        if not ctx.is_retry:
            raise ValueError("again")
        return "done"

    handle = await twice.dispatch()
    seen: list[JobRecord] = []
    async for job in handle.updates():
        if not seen:
            await work(app)
        seen.append(job)

    assert seen[0].status == "pending"
    assert (seen[-1].status, seen[-1].output) == ("completed", "done")
    assert "retry" in [job.status for job in seen]
    assert all(one != other for one, other in pairwise(seen))


async def test_a_finished_job_has_one_update(app: Forge, work: Work) -> None:
    handle = await app.dispatch(_echo(app), {})
    await work(app)
    await handle.result(10)

    assert [job.status async for job in handle.updates()] == ["completed"]


async def test_a_row_changed_in_sql_is_seen_within_seconds(app: Forge, psql: Any) -> None:
    handle = await app.dispatch(_echo(app), {})
    seen: list[str] = []
    async with asyncio.timeout(20):
        async for job in handle.updates():
            seen.append(job.status)
            if job.status == "pending":
                await psql.execute("update forge_jobs set status = 'cancelled'")

    assert seen == ["pending", "cancelled"]


async def test_leaving_the_updates_early_cleans_up(app: Forge) -> None:
    handle = await app.dispatch(_echo(app), {})
    updates = handle.updates()
    await anext(updates)
    await updates.aclose()

    with pytest.raises(ResultTimeout):
        await handle.result(0.01)
    assert (await app.watcher())._watched == {}


def _echo(app: Forge) -> str:
    @app.job
    async def echo(ctx: JobContext, input: dict) -> dict:
        return input

    return "echo"
