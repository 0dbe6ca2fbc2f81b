"""Every kind of connection that conn= accepts, and how its owner ends the transaction."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

End = Callable[[], Awaitable[None]]


class Lent(NamedTuple):
    """A connection in a transaction."""

    conn: Any
    commit: End
    rollback: End


Open = Callable[[str], AbstractAsyncContextManager[Lent]]


@asynccontextmanager
async def asyncpg_connection(url: str) -> AsyncIterator[Lent]:
    conn = await asyncpg.connect(url)
    yield await _begun(conn)
    await conn.close()


@asynccontextmanager
async def asyncpg_with_json_codecs(url: str) -> AsyncIterator[Lent]:
    conn = await asyncpg.connect(url)
    for name in ("json", "jsonb"):
        await conn.set_type_codec(name, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    yield await _begun(conn)
    await conn.close()


@asynccontextmanager
async def asyncpg_pool(url: str) -> AsyncIterator[Lent]:
    async with asyncpg.create_pool(url, min_size=0) as pool, pool.acquire() as conn:
        yield await _begun(conn)


@asynccontextmanager
async def psycopg_connection(url: str) -> AsyncIterator[Lent]:
    conn = psycopg.connect(url)
    yield Lent(conn, _later(conn.commit), _later(conn.rollback))
    conn.close()


@asynccontextmanager
async def psycopg_autocommit_in_transaction(url: str) -> AsyncIterator[Lent]:
    conn = psycopg.connect(url, autocommit=True)
    conn.execute("begin")
    yield Lent(conn, _later(conn.commit), _later(conn.rollback))
    conn.close()


@asynccontextmanager
async def psycopg_async(url: str) -> AsyncIterator[Lent]:
    conn = await psycopg.AsyncConnection.connect(url)
    yield Lent(conn, conn.commit, conn.rollback)
    await conn.close()


@asynccontextmanager
async def sqlalchemy_connection(url: str) -> AsyncIterator[Lent]:
    engine = sqlalchemy.create_engine(on("psycopg", url))
    with engine.connect() as conn:
        yield Lent(conn, _later(conn.commit), _later(conn.rollback))
    engine.dispose()


@asynccontextmanager
async def sqlalchemy_session(url: str) -> AsyncIterator[Lent]:
    engine = sqlalchemy.create_engine(on("psycopg", url))
    with Session(engine) as session:
        yield Lent(session, _later(session.commit), _later(session.rollback))
    engine.dispose()


@asynccontextmanager
async def sqlalchemy_scoped_session(url: str) -> AsyncIterator[Lent]:
    engine = sqlalchemy.create_engine(on("psycopg", url))
    session = scoped_session(sessionmaker(engine))
    yield Lent(session, _later(session.commit), _later(session.rollback))
    session.remove()
    engine.dispose()


def sqlalchemy_async_connection(driver: str) -> Open:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Lent]:
        engine = create_async_engine(on(driver, url))
        async with engine.connect() as conn:
            yield Lent(conn, conn.commit, conn.rollback)
        await engine.dispose()

    return opened


def sqlalchemy_async_session(driver: str) -> Open:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Lent]:
        engine = create_async_engine(on(driver, url))
        async with AsyncSession(engine) as session:
            yield Lent(session, session.commit, session.rollback)
        await engine.dispose()

    return opened


def on(driver: str, url: str) -> str:
    """Return the address as SQLAlchemy wants it."""
    return url.replace("postgresql://", f"postgresql+{driver}://")


async def _begun(conn: Any) -> Lent:
    transaction = conn.transaction()
    await transaction.start()
    return Lent(conn, transaction.commit, transaction.rollback)


def _later(act: Callable[[], None]) -> End:
    async def acting() -> None:
        act()

    return acting


SYNC: dict[str, Open] = {
    "psycopg": psycopg_connection,
    "psycopg autocommit": psycopg_autocommit_in_transaction,
    "sqlalchemy connection": sqlalchemy_connection,
    "sqlalchemy session": sqlalchemy_session,
    "sqlalchemy scoped session": sqlalchemy_scoped_session,
}
ASYNC: dict[str, Open] = {
    "asyncpg": asyncpg_connection,
    "asyncpg pool": asyncpg_pool,
    "asyncpg json codecs": asyncpg_with_json_codecs,
    "psycopg async": psycopg_async,
    "sqlalchemy asyncpg connection": sqlalchemy_async_connection("asyncpg"),
    "sqlalchemy asyncpg session": sqlalchemy_async_session("asyncpg"),
    "sqlalchemy psycopg connection": sqlalchemy_async_connection("psycopg"),
    "sqlalchemy psycopg session": sqlalchemy_async_session("psycopg"),
}
