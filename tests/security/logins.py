"""Logins for attacks on the database: forge_api, forge_worker, and a role without any grant."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from forge.store.connection.database import Database
from forge.store.roles import grant_roles
from tests.dead_letters.letters import fill
from tests.store.row_security.conftest import as_role

STRANGER = "forge_test_stranger"


@pytest.fixture
async def granted(database: Database, psql: Any) -> AsyncIterator[Database]:
    """A database with jobs, dead letters, statistics, the two roles, and a login without grants."""
    await grant_roles(database)
    await psql.execute("insert into forge_jobs (job_type) select 'x' from generate_series(1, 1000)")
    await psql.execute("analyze forge_jobs")
    await fill(psql, 2)
    await psql.execute(f"create role {STRANGER} login")
    yield database
    await psql.execute(f"drop owned by {STRANGER}, forge_api, forge_worker cascade")
    await psql.execute(f"drop role {STRANGER}")


@pytest.fixture
async def attacker(
    granted: Database, request: pytest.FixtureRequest
) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A session of the role that the test names, which acts for an operator."""
    conn = await asyncpg.connect(as_role(request.param, granted.url))
    await conn.execute("select set_config('forge.tenant_id', '*', false)")
    yield conn
    await conn.close()
