"""Middleware wraps each attempt, the first registered outermost."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from forge import Forge, JobContext, JobFailed, Retry
from tests.apps import Work

Next = Callable[[], Awaitable[Any]]


async def test_the_first_middleware_is_the_outermost(app: Forge, work: Work) -> None:
    trail: list[str] = []

    def leaving(name: str) -> Any:
        async def wrap(ctx: JobContext, call_next: Next) -> Any:
            trail.append(f"{name} in")
            result = await call_next()
            trail.append(f"{name} out")
            return result

        return wrap

    app.middleware(leaving("outer"))
    app.middleware(leaving("inner"))

    @app.job
    async def ping(ctx: JobContext) -> str:
        trail.append("handler")
        return "pong"

    await work(app)

    assert await (await ping.dispatch()).result(10) == "pong"
    assert trail == ["outer in", "inner in", "handler", "inner out", "outer out"]


async def test_a_middleware_may_change_what_comes_back(app: Forge, work: Work) -> None:
    @app.middleware
    async def loud(ctx: JobContext, call_next: Next) -> Any:
        return (await call_next()).upper()

    @app.job
    async def ping(ctx: JobContext) -> str:
        return "pong"

    await work(app)

    assert await (await ping.dispatch()).result(10) == "PONG"


async def test_a_middleware_may_answer_in_place_of_the_handler(app: Forge, work: Work) -> None:
    called: list[str] = []

    @app.middleware
    async def maintenance(ctx: JobContext, call_next: Next) -> Any:
        return "closed"

    @app.job
    async def ping(ctx: JobContext) -> None:
        called.append("called")

    await work(app)

    assert await (await ping.dispatch()).result(10) == "closed"
    assert called == []


async def test_a_middleware_sees_the_error_and_may_raise_another(app: Forge, work: Work) -> None:
    @app.middleware
    async def translate(ctx: JobContext, call_next: Next) -> Any:
        try:
            return await call_next()
        except KeyError as error:
            raise ValueError(f"translated {error}") from error

    @app.job(max_attempts=1)
    async def fail(ctx: JobContext) -> None:
        raise KeyError("k")

    await work(app)

    with pytest.raises(JobFailed, match="translated 'k'"):
        await (await fail.dispatch()).result(10)


async def test_a_middleware_wraps_each_attempt_and_knows_which(app: Forge, work: Work) -> None:
    seen: list[tuple[str, int]] = []

    @app.middleware
    async def note(ctx: JobContext, call_next: Next) -> Any:
        seen.append((ctx.job_type, ctx.attempt))
        return await call_next()

    @app.job(retry=Retry(max_backoff="10ms"))
    async def twice(ctx: JobContext) -> None:
        if not ctx.is_retry:
            raise ValueError("again")

    await work(app)
    await (await twice.dispatch()).result(10)

    assert seen == [("twice", 1), ("twice", 2)]


async def test_what_a_middleware_sets_in_its_context_reaches_a_thread(
    app: Forge, work: Work
) -> None:
    current: ContextVar[str] = ContextVar("current", default="nothing")

    @app.middleware
    async def name(ctx: JobContext, call_next: Next) -> Any:
        current.set("from the middleware")
        return await call_next()

    @app.job
    def read(ctx: JobContext) -> str:
        return current.get()

    await work(app)

    assert await (await read.dispatch()).result(10) == "from the middleware"


async def test_a_middleware_that_hangs_is_stopped_by_the_timeout_of_the_job(
    app: Forge, work: Work
) -> None:
    @app.middleware
    async def hang(ctx: JobContext, call_next: Next) -> Any:
        await asyncio.Event().wait()

    @app.job(timeout="100ms", max_attempts=1)
    def ping(ctx: JobContext) -> None: ...

    await work(app)

    with pytest.raises(JobFailed, match="longer than its timeout"):
        await (await ping.dispatch()).result(10)


async def test_a_middleware_that_hangs_after_a_thread_is_stopped_too(
    app: Forge, work: Work
) -> None:
    @app.middleware
    async def hang(ctx: JobContext, call_next: Next) -> Any:
        await call_next()
        await asyncio.Event().wait()

    @app.job(timeout="100ms", max_attempts=1)
    def ping(ctx: JobContext) -> None: ...

    await work(app)

    with pytest.raises(JobFailed, match="longer than its timeout"):
        await (await ping.dispatch()).result(10)
