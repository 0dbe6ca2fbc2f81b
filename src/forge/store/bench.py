"""What a measurement asks of the database beside the jobs: a place of its own, and what it cost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from forge.core.database_url import with_database
from forge.core.errors import ForgeError
from forge.store.database import Database
from forge.store.migrate import migrate
from forge.store.statement import Statement, load, only


def has_work() -> Statement[bool]:
    return Statement(load("bench/has_work"), (), lambda found: bool(only(found)["has_work"]))


def wal_position() -> Statement[float]:
    return Statement(load("bench/wal_position"), (), lambda found: float(only(found)["bytes"]))


@asynccontextmanager
async def throwaway_database(beside: Database) -> AsyncIterator[str]:
    """Make a migrated database on the same server, give its URL, and drop it in the end."""
    may_create = Statement(load("bench/may_create"), (), lambda found: only(found)["may_create"])
    if not await beside.run(may_create):
        raise ForgeError(
            "the role may not create databases, and your own is not used for measurements; "
            "`alter role … createdb`, or name another database in FORGE_DATABASE_URL"
        )
    name = f"forge_bench_{uuid4().hex[:12]}"
    url = with_database(beside.url, name)
    try:
        await _execute(beside, "bench/create_database", name)
        made = Database(url)
        await migrate(made)
        yield url
    finally:
        await _execute(beside, "bench/drop_database", name)


async def _execute(database: Database, command: str, name: str) -> None:
    async with database.acquire() as connection:
        await connection.execute(await connection.fetchval(load(command), name))
