"""run_all on the caller's connection: claims, handlers and acks are rolled back with the test."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)

from forge import Forge, JobContext, Retry, Status
from forge.testing import (
    advance,
    assert_dispatched,
    assert_not_dispatched,
    dispatched,
    run_all,
    run_one,
    sync,
)


@pytest.fixture
async def conn(database_url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A connection whose transaction is rolled back."""
    connection = await asyncpg.connect(database_url)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("create table orders (id integer primary key, state text)")
    yield connection
    await transaction.rollback()
    await connection.close()


@pytest.fixture
def psycopg_conn(database_url: str) -> Iterator["psycopg.Connection[Any]"]:
    """A sync connection whose transaction is rolled back."""
    with psycopg.connect(database_url) as connection:
        connection.execute("create table orders (id integer primary key, state text)")
        yield connection
        connection.rollback()


@pytest.fixture
async def alchemy(database_url: str) -> AsyncIterator[AsyncConnection]:
    """A connection of SQLAlchemy, as its documentation recommends it for tests."""
    engine = create_async_engine(database_url.replace("postgresql:", "postgresql+asyncpg:"))
    async with engine.connect() as connection:
        transaction = await connection.begin()
        await connection.execute(text("create table orders (id integer primary key, state text)"))
        yield connection
        await transaction.rollback()
    await engine.dispose()


async def test_everything_happens_in_the_transaction_of_the_test(
    app: Forge, conn: "asyncpg.Connection[Any]"
) -> None:
    @app.job(retry=Retry(max_attempts=2))
    async def ship(ctx: JobContext, input: dict[str, Any]) -> str:
        async with ctx.db.acquire() as own, own.transaction():
            await own.execute("insert into orders values ($1, 'shipped')", input["id"])
        ctx.progress(50, "shipped")
        if ctx.attempt == 1:
            await ctx.db.execute("insert into orders values ($1, 'again')", input["id"])
        await mail.dispatch({"order": input["id"]}, delay="1h")
        await app.dispatch_many(mail, [{"order": 8}, {"order": 9}])
        return "shipped"

    @app.job
    async def mail(ctx: JobContext, input: dict[str, Any]) -> None: ...

    handle = await ship.dispatch({"id": 7}, conn=conn)
    summary = await run_all(app, conn=conn)

    # The first attempt ended in a failed transaction, so that nothing of it is left.
    assert (summary.retried, summary.completed) == (1, 3)
    assert await conn.fetchval("select array_agg(id) from orders") == [7]
    (shipped,) = await dispatched(app, ship, conn=conn)
    assert (shipped.id, shipped.output, shipped.status) == (handle.id, "shipped", Status.COMPLETED)
    await assert_dispatched(app, mail, times=3, conn=conn)
    await advance(app, "1h", conn=conn)
    assert (await run_all(app, conn=conn)).count("completed", "mail") == 1
    await assert_not_dispatched(app, ship)


async def test_the_error_of_a_handler_is_raised_and_what_it_wrote_stays(
    app: Forge, conn: "asyncpg.Connection[Any]"
) -> None:
    @app.job(max_attempts=1)
    async def fails(ctx: JobContext) -> None:
        await conn.execute("insert into orders values (1, 'begun')")
        raise LookupError("no such user")

    handle = await fails.dispatch(conn=conn)
    with pytest.raises(LookupError):
        await run_one(handle, conn=conn)

    assert await conn.fetchval("select state from orders") == "begun"
    (letter,) = await conn.fetch("select * from forge_dead_letters")
    assert letter["job_id"] == handle.id


async def test_threads_and_processes_run_on_the_connection_of_a_plain_test(
    app: Forge, psycopg_conn: "psycopg.Connection[Any]"
) -> None:
    @app.job(max_attempts=2)
    def ship(ctx: JobContext, input: dict[str, Any]) -> int:
        psycopg_conn.execute("insert into orders values (%s, 'shipped')", (input["id"],))
        if ctx.attempt == 1:
            psycopg_conn.execute("select no_such_column")
        return int(input["id"])

    @app.job(isolation="process")
    def apart(ctx: JobContext) -> int:
        row = psycopg_conn.execute("select count(*) from orders").fetchone()
        return int(row[0]) if row else 0

    def plain_test() -> None:
        handle = app.sync.dispatch(ship, {"id": 3}, conn=psycopg_conn)
        assert sync.run_one(handle, conn=psycopg_conn) == 3
        app.sync.dispatch(apart, conn=psycopg_conn)
        assert sync.run_all(app, conn=psycopg_conn).completed == 1
        (record,) = sync.dispatched(app, apart, conn=psycopg_conn)
        assert record.output == 1

    import asyncio

    await asyncio.to_thread(plain_test)


async def test_sessions_of_sqlalchemy_share_the_connection(
    app: Forge, alchemy: AsyncConnection
) -> None:
    make_session = async_sessionmaker(alchemy, join_transaction_mode="create_savepoint")

    @app.job
    async def ship(ctx: JobContext, input: dict[str, Any]) -> str:
        async with make_session() as session, session.begin():
            await session.execute(text("update orders set state = 'shipped'"))
            await mail.dispatch({"order": 1}, conn=session)
        return "shipped"

    @app.job
    async def mail(ctx: JobContext, input: dict[str, Any]) -> int:
        found: int = await ctx.db.fetchval("select count(*) from orders where state = 'shipped'")
        return found

    async with make_session() as session:
        await place_order(session, ship)
        assert (await run_all(app, conn=alchemy)).completed == 2
        state = await session.scalar(text("select state from orders"))

    assert state == "shipped"
    (record,) = await dispatched(app, mail, conn=alchemy)
    assert record.output == 1
    await assert_not_dispatched(app, ship)


async def place_order(session: AsyncSession, ship: Any) -> None:
    """The code under test, which commits."""
    await session.execute(text("insert into orders values (1, 'new')"))
    await ship.dispatch({"id": 1}, conn=session)
    await session.commit()
