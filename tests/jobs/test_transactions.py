"""Transactions: what commits together, what rolls back together."""

import asyncio
from typing import Any

import pytest

from forge import Forge, ForgeError, JobContext, JobFailed, Retry, StaleAttempt
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.worker import handlers


@pytest.fixture(autouse=True)
async def effects(psql: Any) -> None:
    await psql.execute("create table effects (n int)")


async def test_the_handlers_writes_and_the_completion_commit_together(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job
    async def pay(ctx: JobContext) -> str:
        async with ctx.complete_in_transaction() as conn:
            await conn.execute("insert into effects values (1)")
            seen = await psql.fetchrow(
                "select status, (select count(*) from effects) from forge_jobs"
            )
            assert tuple(seen) == ("running", 0)
        return "receipt"

    await work(app)
    handle = await pay.dispatch()

    assert await handle.result(10) == "receipt"
    assert await psql.fetchval("select array_agg(n) from effects") == [1]
    assert (await handle.get()).attempts == 1


async def test_an_output_passed_to_the_transaction_commits_with_it(app: Forge, work: Work) -> None:
    @app.job
    async def pay(ctx: JobContext) -> None:
        async with ctx.complete_in_transaction({"receipt": 7}) as conn:
            await conn.execute("insert into effects values (1)")

    await work(app)

    assert await (await pay.dispatch()).result(10) == {"receipt": 7}


async def test_an_output_passed_to_the_transaction_has_the_same_size_limit(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(payload={"max_output": "512KB"})

    @app.job(max_attempts=1)
    async def export(ctx: JobContext, size: int) -> None:
        async with ctx.complete_in_transaction("x" * size):
            pass

    await work(app)

    assert await (await export.dispatch(400_000)).result(10) == "x" * 400_000
    with pytest.raises(JobFailed, match="the limit is 524,288 bytes"):
        await (await export.dispatch(600_000)).result(10)


async def test_an_error_inside_rolls_both_back_and_the_job_is_retried(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(retry=Retry(max_backoff="10ms"))
    async def pay(ctx: JobContext) -> None:
        async with ctx.complete_in_transaction() as conn:
            await conn.execute("insert into effects values ($1)", ctx.attempt)
            if not ctx.is_retry:
                raise ValueError("after the write")

    await work(app)
    handle = await pay.dispatch()
    await handle.result(10)

    assert await psql.fetchval("select array_agg(n) from effects") == [2]
    assert (await handle.get()).attempts == 2


async def test_an_error_after_the_commit_does_not_run_it_again(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(retry=Retry(max_backoff="10ms"))
    async def pay(ctx: JobContext) -> None:
        async with ctx.complete_in_transaction() as conn:
            await conn.execute("insert into effects values ($1)", ctx.attempt)
        raise ValueError("too late to matter")

    worker = await work(app)
    handle = await pay.dispatch()
    await handle.result(10)
    await until(lambda: not worker.runner.running, 10, "the attempt ended")

    assert (await handle.get()).status == "completed"
    assert await psql.fetchval("select array_agg(n) from effects") == [1]


async def test_a_stale_attempt_commits_nothing_and_gets_an_error(
    app: Forge, work: Work, psql: Any
) -> None:
    errors: list[str] = []

    @app.job
    async def pay(ctx: JobContext) -> None:
        try:
            async with ctx.complete_in_transaction() as conn:
                await conn.execute("insert into effects values (1)")
                await psql.execute("update forge_jobs set status = 'cancelled'")
        except StaleAttempt as error:
            errors.append(str(error))
            raise

    await work(app)
    handle = await pay.dispatch()

    with pytest.raises(JobFailed, match="cancelled"):
        await handle.result(10)
    await until(lambda: errors, 10, "the handler got the error")
    assert "complete_in_transaction" in errors[0]
    assert await psql.fetchval("select count(*) from effects") == 0


async def test_a_child_process_completes_in_its_transaction(
    app: Forge, work: Work, psql: Any
) -> None:
    app.register(handlers.write_and_complete)
    await work(app)
    handle = await handlers.write_and_complete.dispatch({"n": 3})

    assert await handle.result(30) == "returned"
    assert await psql.fetchval("select array_agg(n) from effects") == [3]


async def test_a_plain_function_gets_an_error_because_it_has_no_loop(
    app: Forge, work: Work
) -> None:
    @app.job(max_attempts=1)
    def pay(ctx: JobContext) -> None:
        assert ctx.db

    await work(app)

    with pytest.raises(JobFailed, match="make the handler `async def`"):
        await (await pay.dispatch()).result(10)


async def test_a_job_dispatched_in_a_transaction_exists_only_if_that_commits(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job
    async def ping(ctx: JobContext, input: dict) -> int:
        return input["n"]

    await work(app)
    undone = psql.transaction()
    await undone.start()
    lost = await ping.dispatch({"n": 1}, conn=psql)
    await undone.rollback()
    async with psql.transaction():
        await psql.execute("insert into effects values (1)")
        kept = await ping.dispatch({"n": 2}, conn=psql)
        with pytest.raises(ForgeError, match="there is no job"):
            await kept.get()

    assert await kept.result(10) == 2
    with pytest.raises(ForgeError, match="there is no job"):
        await lost.get()


async def test_an_idle_worker_is_woken_after_the_dispatchers_commit(
    app: Forge, work: Work, psql: Any
) -> None:
    begun = asyncio.Event()

    @app.job
    async def ping(ctx: JobContext) -> None:
        begun.set()

    await work(app)
    async with psql.transaction():
        await app.dispatch(ping, conn=psql, notify=True)

    await asyncio.wait_for(begun.wait(), 10)


async def test_many_dispatched_in_a_transaction_roll_back_with_it(app: Forge, psql: Any) -> None:
    @app.job
    async def ping(ctx: JobContext, input: dict) -> None: ...

    undone = psql.transaction()
    await undone.start()
    assert await app.dispatch_many(ping, ({"n": n} for n in range(50)), conn=psql) == 50
    await undone.rollback()

    assert await psql.fetchval("select count(*) from forge_jobs") == 0
