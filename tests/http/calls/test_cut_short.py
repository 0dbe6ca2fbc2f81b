"""Calls that time out, lose their connection or their caller, and concurrent calls."""

import asyncio
from typing import Any

import httpx
import pytest

from forge import ActionContext, Forge, MutationContext
from tests.calls.mutations.conftest import none_open
from tests.faults.kit.process import until
from tests.http.calls.conftest import ADD
from tests.http.conftest import MakeServerApp, MakeToken, Serve


async def test_timeout_returns_504_and_rolls_back(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    @app.mutation(timeout="50ms")
    async def slow(ctx: MutationContext) -> None:
        await ctx.db.execute(ADD, "ada")
        await ctx.db.execute("select pg_sleep(60)")

    answer = await http.post("/_api/mutations/slow", headers=token("user"))

    assert (answer.status_code, answer.json()["code"]) == (504, "timed_out")
    assert await psql.fetchval("select count(*) from users") == 0
    await until(lambda: none_open(psql), 10, "no transaction is left open")


async def test_a_mutation_whose_connection_is_killed_is_answered_503_and_wrote_nothing(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    @app.mutation
    async def register(ctx: MutationContext) -> None:
        await ctx.db.execute(ADD, "ada")
        await ctx.dispatch_job("welcome", {})
        pid = await ctx.db.fetchval("select pg_backend_pid()")
        await psql.execute("select pg_terminate_backend($1, 5000)", pid)

    answer = await http.post("/_api/mutations/register", headers=token("user"))

    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert int(answer.headers["retry-after"]) > 0
    assert await psql.fetchval("select count(*) from users") == 0
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


@pytest.fixture
def waiting(app: Forge) -> asyncio.Event:
    """Set when a call of `wait` has begun."""
    began = asyncio.Event()

    @app.mutation
    async def wait(ctx: MutationContext) -> None:
        await ctx.db.execute(ADD, "ada")
        await ctx.dispatch_job("welcome", {})
        began.set()
        await ctx.db.execute("select pg_sleep(60)")

    return began


async def test_mutation_is_rolled_back_when_the_caller_disconnects(
    app: Forge,
    make_server_app: MakeServerApp,
    serve: Serve,
    token: MakeToken,
    psql: Any,
    waiting: asyncio.Event,
) -> None:
    address = await serve(make_server_app(app))
    async with httpx.AsyncClient(base_url=address, headers=token("user")) as client:
        calling = asyncio.create_task(client.post("/_api/mutations/wait"))
        await asyncio.wait_for(waiting.wait(), 10)
        assert not await none_open(psql)

        calling.cancel()

    await until(lambda: none_open(psql), 10, "its transaction is over")
    assert await psql.fetchval("select count(*) from users") == 0
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_action_continues_when_the_caller_disconnects(
    app: Forge, make_server_app: MakeServerApp, serve: Serve, token: MakeToken, psql: Any
) -> None:
    began, gone = asyncio.Event(), asyncio.Event()

    @app.action
    async def persist(ctx: ActionContext) -> None:
        began.set()
        await gone.wait()
        await ctx.dispatch_job("welcome", {})

    address = await serve(make_server_app(app))
    async with httpx.AsyncClient(base_url=address, headers=token("user")) as client:
        calling = asyncio.create_task(client.post("/_api/actions/persist"))
        await asyncio.wait_for(began.wait(), 10)
        calling.cancel()
    gone.set()

    async def dispatched() -> bool:
        return bool(await psql.fetchval("select count(*) from forge_jobs"))

    await until(dispatched, 10, "it went on")


async def test_many_callers_at_once_are_all_served(
    app: Forge, make_server_app: MakeServerApp, serve: Serve, token: MakeToken, psql: Any
) -> None:
    address = await serve(make_server_app(app))
    emails = [f"{n}@example.org" for n in range(60)]

    async with httpx.AsyncClient(base_url=address, headers=token("user"), timeout=30) as client:
        answers = await asyncio.gather(
            *(client.post("/_api/mutations/register_user", json={"email": e}) for e in emails)
        )

    assert {answer.status_code for answer in answers} == {200}
    assert await psql.fetchval("select count(distinct email) from users") == 60
    assert await psql.fetchval("select count(*) from forge_jobs") == 60
    await until(lambda: none_open(psql), 10, "every connection was given back clean")
