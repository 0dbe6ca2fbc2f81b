"""Wake-ups: which session notifies idle workers, and in which transaction."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from forge import Forge, JobContext
from forge.transports.postgres import DELAYS_AFTER_COMMIT
from tests.faults.kit.process import until

Wakeups = asyncio.Queue[int]
LAST_LOOK = DELAYS_AFTER_COMMIT[-1]


@pytest.fixture
async def wakeups(database_url: str) -> AsyncIterator[Wakeups]:
    """The process ids of the sessions that sent a wake-up."""
    pids: Wakeups = asyncio.Queue()
    conn = await asyncpg.connect(database_url)
    await conn.add_listener("forge_wake", lambda _, pid, *rest: pids.put_nowait(pid))
    yield pids
    await conn.close()


@pytest.fixture
async def open_app(app: Forge) -> Forge:
    @app.job
    async def ping(ctx: JobContext, input: dict[str, Any]) -> None: ...

    await (await app.session()).database()
    return app


async def dispatch(app: Forge, way: str, **options: Any) -> None:
    if way == "one":
        await app.dispatch("ping", {}, **options)
    else:
        await app.dispatch_many("ping", [{}, {}], **options)


@pytest.mark.parametrize("way", ["one", "many"])
async def test_a_dispatch_without_conn_is_followed_by_a_wake_up(
    open_app: Forge, wakeups: Wakeups, way: str
) -> None:
    await dispatch(open_app, way)

    await asyncio.wait_for(wakeups.get(), 10)


@pytest.mark.parametrize("way", ["one", "many"])
async def test_a_dispatch_in_a_callers_transaction_sends_its_wake_up_afterwards(
    open_app: Forge, wakeups: Wakeups, psql: Any, way: str
) -> None:
    """A notification inside the transaction would serialize all such commits."""
    async with psql.transaction():
        await dispatch(open_app, way, conn=psql)

    assert await asyncio.wait_for(wakeups.get(), 10) != psql.get_server_pid()


@pytest.mark.parametrize("way", ["one", "many"])
async def test_a_callers_transaction_notifies_if_requested(
    open_app: Forge, wakeups: Wakeups, psql: Any, way: str
) -> None:
    async with psql.transaction():
        await dispatch(open_app, way, conn=psql, notify=True)

    assert await asyncio.wait_for(wakeups.get(), 10) == psql.get_server_pid()


def test_a_loop_that_ends_with_an_open_app_starts_no_wake_up(database_url: str) -> None:
    app = Forge(database_url=database_url)
    begun: set[asyncio.Task[Any]] = set()

    @app.job
    async def ping(ctx: JobContext, input: dict[str, Any]) -> None: ...

    async def ends_late() -> AsyncIterator[None]:
        try:
            yield
        finally:
            # All tasks are cancelled by now, so a task that starts here would never end.
            before, loop = asyncio.all_tasks(), asyncio.get_running_loop()
            over = loop.time() + LAST_LOOK + 0.1

            def is_over() -> bool:
                begun.update(asyncio.all_tasks() - before)
                return bool(begun) or loop.time() > over

            await until(is_over, 10, "every look had its time")

    async def main() -> None:
        conn = await asyncpg.connect(database_url)
        await (await app.session()).database()
        async with conn.transaction():
            await ping.dispatch({}, conn=conn)
        await conn.close()
        await anext(generator)

    generator = ends_late()
    asyncio.run(main())

    assert begun == set()
