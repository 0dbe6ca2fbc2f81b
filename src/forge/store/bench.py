"""Statements of `forge bench`: a throwaway database, and how much WAL was written."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from forge.core.database_url import with_database
from forge.core.errors import ForgeError
from forge.store.connection.database import Database
from forge.store.migrate import migrate
from forge.store.statement import Statement, load, only


def has_work() -> Statement[bool]:
    return Statement(load("bench/has_work"), (), lambda found: bool(only(found)["has_work"]))


def wal_position() -> Statement[float]:
    return Statement(load("bench/wal_position"), (), lambda found: float(only(found)["bytes"]))


@asynccontextmanager
async def throwaway_database(server: Database) -> AsyncIterator[str]:
    """Create a migrated database on the same server, yield its URL, and drop it afterwards."""
    may_create = Statement(load("bench/may_create"), (), lambda found: only(found)["may_create"])
    if not await server.run(may_create):
        raise ForgeError(
            "the role may not create databases, and `forge bench` does not use your own; run "
            "`alter role … createdb`, or name another database in FORGE_DATABASE_URL"
        )
    name = f"forge_bench_{uuid4().hex[:12]}"
    url = with_database(server.url, name)
    try:
        await _execute(server, "bench/create_database", name)
        made = Database(url)
        await migrate(made)
        yield url
    finally:
        await _execute(server, "bench/drop_database", name)


async def _execute(database: Database, command: str, name: str) -> None:
    async with database.acquire() as connection:
        await connection.execute(await connection.fetchval(load(command), name))
