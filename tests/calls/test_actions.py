"""Actions: called like mutations, without a transaction."""

import asyncio
from typing import Any

import httpx
import pytest

from forge import ActionContext, Auth, Forge, ForgeError, JobContext, Rejected, TimedOut
from tests.apps import Work
from tests.faults.kit.process import until


async def test_a_job_dispatched_by_an_action_runs_before_the_action_ends(
    app: Forge, work: Work
) -> None:
    @app.job
    async def process_webhook(ctx: JobContext, input: dict) -> list[Any]:
        return [input["event"], ctx.auth and ctx.auth.name, ctx.tenant_id]

    @app.action
    async def receive_webhook(ctx: ActionContext, event: dict) -> Any:
        return await (await ctx.dispatch_job(process_webhook, event)).result(10)

    await work(app)
    ann = Auth(name="ann", tenant_id=7)

    done = await app.call("receive_webhook", {"event": "paid"}, auth=ann)

    assert done == ["paid", "ann", 7]


async def test_dispatches_before_an_error_of_an_action_remain(app: Forge, psql: Any) -> None:
    @app.job
    async def noop(ctx: JobContext) -> None: ...

    @app.action
    async def halfway(ctx: ActionContext) -> None:
        async with ctx.db.acquire() as conn:
            await conn.execute("create table traces ()")
        await ctx.dispatch_job(noop)
        raise LookupError("halfway")

    with pytest.raises(LookupError):
        await halfway.call()

    assert await psql.fetchval("select count(*) from traces") == 0
    assert await psql.fetchval("select count(*) from forge_jobs") == 1


async def test_an_action_cannot_dispatch_for_another_tenant(app: Forge, psql: Any) -> None:
    @app.job
    async def noop(ctx: JobContext) -> None: ...

    @app.action
    async def reach(ctx: ActionContext) -> None:
        await ctx.dispatch_job(noop, tenant_id=8)

    with pytest.raises(Rejected, match="bound to tenant 7") as refused:
        await reach.call(tenant_id=7)

    assert refused.value.status == 403
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_an_action_that_times_out_is_cancelled(app: Forge) -> None:
    ended = asyncio.Event()

    @app.action(timeout="50ms")
    async def slow(ctx: ActionContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(TimedOut, match="slow ran longer than its timeout of 50ms"):
        await slow.call()

    assert ended.is_set()


async def test_its_http_client_is_shared_and_closed_with_the_app(app: Forge) -> None:
    clients: list[httpx.AsyncClient] = []

    @app.action
    async def ask(ctx: ActionContext) -> None:
        clients.append(ctx.http)

    await ask.call()
    await ask.call()
    assert clients[0] is clients[1]
    assert not clients[0].is_closed

    await app.close()

    assert clients[0].is_closed


async def test_sys_exit_in_an_action_does_not_end_the_process(app: Forge) -> None:
    @app.action
    async def leave(ctx: ActionContext) -> None:
        raise SystemExit(1)

    with pytest.raises(ForgeError, match=r"leave called sys\.exit"):
        await leave.call()


async def test_a_job_can_call_a_mutation_with_the_dispatchers_identity(
    app: Forge, work: Work
) -> None:
    seen: list[Any] = []

    @app.mutation
    async def note(ctx: Any, text: str) -> None:
        seen.append((text, ctx.auth, ctx.tenant_id))

    @app.job
    async def relay(ctx: JobContext, input: dict) -> None:
        await note.call(input, auth=ctx.auth, tenant_id=ctx.tenant_id)

    await work(app)
    ann = Auth(name="ann", tenant_id=7)
    await relay.dispatch({"text": "hello"}, auth=ann, tenant_id=7)

    await until(lambda: bool(seen), 10, "the mutation ran")
    assert seen == [("hello", ann, 7)]
