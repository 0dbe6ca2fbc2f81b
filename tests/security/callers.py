"""Sessions of forge_api and their callers, for attacks on row security."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from forge.store.connection.database import Database
from forge.store.connection.tenant import Callers, derive_key, sign
from forge.store.roles import grant_roles
from tests.store.row_security.conftest import as_role

SECRET = "a secret of the tests, which is long enough"
ANN = {"name": "ann", "roles": ["user"], "tenant_id": 1}


async def register(database: Database, secret: str) -> None:
    """Do what `forge migrate --roles` does with this [auth] secret."""
    database.callers = Callers(secret)
    await grant_roles(database)


def signed(caller: dict[str, Any], secret: str = SECRET, *, at: float) -> str:
    """Sign a caller at a time of the attacker's choice."""
    return sign(caller, derive_key(secret), at)


@asynccontextmanager
async def session(url: str, caller: str | None = None) -> AsyncIterator[Any]:
    """A session of forge_api that acts for a caller, or for none."""
    conn = await asyncpg.connect(as_role("forge_api", url))
    if caller is not None:
        await act(conn, caller)
    try:
        yield conn
    finally:
        await conn.close()


async def act(conn: Any, caller: str) -> None:
    await conn.execute("select set_config('forge.tenant_id', $1, false)", caller)


async def tenants(conn: Any, table: str = "forge_jobs") -> list[int | None]:
    """Return whose rows a session sees."""
    if table == "forge_outbox":
        table = "forge_outbox join forge_jobs on forge_jobs.id = job_id"
    found = await conn.fetch(f"select tenant_id from {table} order by 1 nulls last")
    return [row["tenant_id"] for row in found]
