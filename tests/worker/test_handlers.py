"""Handlers: what kinds there are, what they are given, and what may come back."""

import asyncio
import os
import threading
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from forge import Forge, InvalidValue, JobContext, JobFailed, NotRegistered, Snooze, job
from tests.apps import Work
from tests.worker import handlers


async def test_a_coroutine_function_runs_on_the_loop_of_the_worker(app: Forge, work: Work) -> None:
    @app.job
    async def here(ctx: JobContext, input: dict) -> bool:
        return asyncio.get_running_loop() is loop

    loop = asyncio.get_running_loop()
    await work(app)

    assert await (await here.dispatch()).result(10) is True


async def test_a_plain_function_runs_in_a_thread_of_its_own(app: Forge, work: Work) -> None:
    @app.job
    def elsewhere(ctx: JobContext, input: dict) -> list[Any]:
        return [threading.current_thread() is threading.main_thread(), os.getpid()]

    await work(app)

    assert await (await elsewhere.dispatch()).result(10) == [False, os.getpid()]


async def test_plain_functions_run_side_by_side(app: Forge, work: Work) -> None:
    meeting = threading.Barrier(3, timeout=20)

    @app.job
    def meet(ctx: JobContext) -> int:
        return meeting.wait()

    await work(app)
    handles = [await meet.dispatch() for _ in range(3)]

    assert {await handle.result(20) for handle in handles} == {0, 1, 2}


@pytest.mark.parametrize("kind", ["where", "where_plainly"])
async def test_an_isolated_function_runs_in_another_process(
    app: Forge, work: Work, kind: str
) -> None:
    definition = getattr(handlers, kind)
    app.register(definition)
    await work(app)

    result = await (await definition.dispatch({})).result(30)

    assert (result["pid"] if kind == "where" else result) != os.getpid()


@pytest.mark.parametrize("isolation", ["none", "process"])
async def test_the_context_says_what_the_handler_needs_to_know(
    app: Forge, work: Work, isolation: str
) -> None:
    if isolation == "none":
        definition: Any = app.job(name="where")(handlers.where.handler)
    else:
        app.register(definition := handlers.where)
    await work(app)
    correlation = uuid4()

    handle = await definition.dispatch(
        {"a": 1}, tenant_id=7, correlation_id=correlation, auth={"actor": "ann"}
    )

    known = await handle.result(30)
    known.pop("pid")
    assert known == {
        "job_id": str(handle.id),
        "job_type": "where",
        "attempt": 1,
        "max_attempts": 3,
        "tenant_id": 7,
        "correlation_id": str(correlation),
        "auth": {"actor": "ann"},
        "is_retry": False,
        "is_last_attempt": False,
        "input": {"a": 1},
    }


async def test_a_job_without_a_caller_is_the_systems(app: Forge, work: Work) -> None:
    @app.job
    async def ask(ctx: JobContext) -> list[Any]:
        return [ctx.auth.is_system, ctx.auth.name, list(ctx.auth.roles), ctx.auth.tenant_id]

    await work(app)

    assert await (await ask.dispatch()).result(20) == [True, None, [], None]
    assert (await (await ask.dispatch(auth={"name": "ann"})).result(20))[:2] == [False, "ann"]


async def test_the_context_lends_a_connection_and_an_http_client(app: Forge, work: Work) -> None:
    @app.job
    async def reach(ctx: JobContext) -> list[Any]:
        async with ctx.db.acquire() as conn:
            return [await conn.fetchval("select 40 + 2"), isinstance(ctx.http, httpx.AsyncClient)]

    @app.job
    def reach_from_thread(ctx: JobContext) -> bool:
        return isinstance(ctx.http, httpx.Client)

    await work(app)

    assert await (await reach.dispatch()).result(10) == [42, True]
    assert await (await reach_from_thread.dispatch()).result(10) is True


async def test_a_definition_can_still_be_called_as_the_function_it_is(app: Forge) -> None:
    @app.job
    async def double(ctx: Any, input: dict) -> int:
        return input["n"] * 2

    assert await double(None, {"n": 4}) == 8


async def test_a_job_of_no_app_says_that_it_must_be_registered() -> None:
    @job
    async def lost(ctx: Any) -> None: ...

    with pytest.raises(NotRegistered, match=r"app\.register\(lost\)"):
        await lost.dispatch()


async def test_two_jobs_of_one_name_are_refused(app: Forge) -> None:
    @app.job(name="twin")
    async def one(ctx: Any) -> None: ...

    with pytest.raises(InvalidValue, match="two jobs named 'twin'"):

        @app.job(name="twin")
        async def other(ctx: Any) -> None: ...


async def test_the_names_of_forge_itself_are_not_for_others(app: Forge) -> None:
    with pytest.raises(InvalidValue, match=r"forge\.\*"):

        @app.job(name="forge.mine")
        async def mine(ctx: Any) -> None: ...


class Nap(Snooze):
    """A snooze whose __init__ leaves out that of its base."""

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)


@pytest.mark.parametrize(
    "raised",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        handlers.Wordless(),
        Nap(),
        Nap(delay=5),
    ],
)
async def test_whatever_a_handler_raises_is_an_error_of_its_job_alone(
    app: Forge, work: Work, raised: BaseException
) -> None:
    @app.job(max_attempts=1)
    async def quit(ctx: JobContext) -> None:
        raise raised

    @app.job(max_attempts=1)
    def quit_in_thread(ctx: JobContext) -> None:
        raise raised

    @app.job
    async def ping(ctx: JobContext) -> str:
        return "pong"

    await work(app)

    for definition in (quit, quit_in_thread):
        with pytest.raises(JobFailed):
            await (await definition.dispatch()).result(10)
    assert await (await ping.dispatch()).result(10) == "pong"


async def test_the_id_of_a_job_sorts_by_the_time_it_was_made(app: Forge) -> None:
    @app.job
    async def ping(ctx: JobContext) -> None: ...

    ids: list[UUID] = [(await ping.dispatch()).id for _ in range(3)]

    assert [id.version for id in ids] == [7, 7, 7]
    assert [id.int >> 80 for id in ids] == sorted(id.int >> 80 for id in ids)
