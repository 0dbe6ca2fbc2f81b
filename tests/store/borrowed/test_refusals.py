"""Unsupported values of `conn=` are rejected with an error that names their type."""

from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from forge import DatabaseUnavailable, Forge, ForgeError, InvalidValue
from forge.definitions.job import JobDefinition
from forge.store import jobs
from forge.store.borrowed import run_on, without_loop
from tests.store.borrowed.conftest import count
from tests.store.connections import ASYNC, on


async def test_a_closed_connection_is_refused(
    database_url: str, plain: JobDefinition[Any, Any]
) -> None:
    of_asyncpg = await asyncpg.connect(database_url)
    await of_asyncpg.close()
    of_psycopg = psycopg.connect(database_url)
    of_psycopg.close()
    async_psycopg = await psycopg.AsyncConnection.connect(database_url)
    await async_psycopg.close()
    of_sqlalchemy = sqlalchemy.create_engine(on("psycopg", database_url)).connect()
    of_sqlalchemy.close()
    async with asyncpg.create_pool(database_url, min_size=0) as pool:
        given_back = await pool.acquire()
        await pool.release(given_back)
        engine = create_async_engine(on("asyncpg", database_url))
        async_sqlalchemy = await engine.connect()
        await async_sqlalchemy.close()

        for conn in (
            of_asyncpg,
            of_psycopg,
            async_psycopg,
            of_sqlalchemy,
            given_back,
            async_sqlalchemy,
        ):
            with pytest.raises(DatabaseUnavailable, match="conn= is closed"):
                await plain.dispatch(conn=conn)
        await engine.dispose()


async def test_a_connection_in_no_transaction_is_refused(
    database_url: str, plain: JobDefinition[Any, Any], psql: Any
) -> None:
    of_psycopg = psycopg.connect(database_url, autocommit=True)
    engine = sqlalchemy.create_engine(on("psycopg", database_url), isolation_level="AUTOCOMMIT")
    of_sqlalchemy = engine.connect()
    async_engine = create_async_engine(on("asyncpg", database_url), isolation_level="AUTOCOMMIT")
    async_session = AsyncSession(async_engine)

    for conn in (psql, of_psycopg, of_sqlalchemy, async_session):
        with pytest.raises(ForgeError, match="not in a transaction"):
            await plain.dispatch(conn=conn)

    assert await count(psql) == 0
    of_psycopg.close()
    of_sqlalchemy.close()
    engine.dispose()
    await async_session.close()
    await async_engine.dispose()


async def test_a_non_connection_is_rejected(
    database_url: str, app: Forge, plain: JobDefinition[Any, Any]
) -> None:
    engine = sqlalchemy.create_engine(on("psycopg", database_url))
    async with asyncpg.create_pool(database_url, min_size=0) as pool:
        for conn in (object(), "postgresql://", engine, pool, 0):
            with pytest.raises(InvalidValue, match="take one connection first"):
                await plain.dispatch(conn=conn)
            with pytest.raises(InvalidValue, match="take one connection first"):
                await app.dispatch_many(plain, [{}], conn=conn)


async def test_an_unsupported_sqlalchemy_driver_is_named_in_the_error(
    plain: JobDefinition[Any, Any],
) -> None:
    with (
        sqlalchemy.create_engine("sqlite://").connect() as conn,
        pytest.raises(InvalidValue, match=r"SQLAlchemy on pysqlite; .*postgresql\+psycopg"),
    ):
        await plain.dispatch(conn=conn)


async def test_an_unmigrated_database_is_named_as_such(
    database_url: str, plain: JobDefinition[Any, Any]
) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute("set local search_path = pg_catalog")

        with pytest.raises(ForgeError, match="forge migrate"):
            await plain.dispatch(conn=conn)


@pytest.mark.parametrize("kind", ASYNC)
async def test_a_connection_with_a_loop_is_refused_where_there_is_none(
    database_url: str, kind: str
) -> None:
    async with ASYNC[kind](database_url) as lent:
        with pytest.raises(InvalidValue, match="needs its event loop"):
            without_loop(lent.conn, run_on(lent.conn, jobs.get([])))
