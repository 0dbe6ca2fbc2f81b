"""Tenants behind a transaction pooler: they share one connection, and each sees its own rows."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest

import forge
from forge import Config, Forge
from forge.http import create_app
from forge.store.connection.database import Database
from forge.store.migrate import migrate
from forge.store.roles import grant_roles
from forge.store.statement import Statement, rows
from tests.dead_letters.letters import fill
from tests.faults.kit.pooler import PGBOUNCER, pgbouncer
from tests.faults.kit.server import running_server
from tests.http.conftest import AUTH, MakeToken, token

__all__ = ["token"]
pytestmark = pytest.mark.skipif(
    PGBOUNCER is None, reason="pgbouncer is not installed: apt-get install pgbouncer"
)
Tenants = list[int | None]
OWN: dict[int | None, Tenants] = {1: [1], 2: [2], None: [1, 2, None]}
ROUNDS = 40
# No tenant in the query: row security decides which rows are visible.
ALL = "select tenant_id from forge_jobs order by tenant_id nulls last"


@forge.mutation
async def read_visible_jobs(ctx: Any) -> list[Tenants]:
    """Read all visible jobs twice, with other tenants' queries in between."""
    found = []
    for _ in range(2):
        found.append([row["tenant_id"] for row in await ctx.db.fetch(ALL)])
        await asyncio.sleep(0)
    return found


@pytest.fixture
async def owner_url() -> AsyncIterator[str]:
    """A server with a job and a dead letter of each tenant, and of no tenant."""
    with running_server(fsync="off") as server:
        database = Database(server.url(tcp=True))
        await migrate(database)
        await grant_roles(database)
        async with database.acquire() as psql:
            await psql.execute("alter role forge_api password 'forge_api'")
            for tenant in OWN:
                insert = "insert into forge_jobs (job_type, tenant_id) values ('x', $1)"
                await psql.execute(insert, tenant)
                await fill(psql, 1, tenant_id=tenant)
        await database.close()
        yield database.url


@pytest.fixture
async def app(owner_url: str) -> AsyncIterator[Forge]:
    """An app with many connections to a pooler that has one to the database."""
    _, _, place = owner_url.rpartition("@")
    with pgbouncer(f"postgresql://forge_api:forge_api@{place}", connections=1) as url:
        config = Config(database={"pooler": True, "pool_size": 8})
        async with Forge(config.model_copy(update={"auth": AUTH}), database_url=url) as app:
            app.register(read_visible_jobs)
            yield app


async def test_tenants_that_share_a_connection_never_see_each_others_rows(
    app: Forge, owner_url: str, token: MakeToken
) -> None:
    headers = {tenant: token("user", "staff", "manager", tenant=tenant) for tenant in OWN}
    transport = httpx.ASGITransport(create_app(app))
    http = httpx.AsyncClient(transport=transport, base_url="http://forge.test")
    database = await (await app.session()).database()

    async def run(tenant: int | None) -> Tenants:
        found = await database.run(Statement(ALL, (), rows), tenant)
        return [row["tenant_id"] for row in found]

    async def call(tenant: int | None) -> Any:
        answer = await http.post(
            "/_api/mutations/read_visible_jobs", headers=headers[tenant], json={}
        )
        return answer.json()

    async def review(tenant: int | None) -> Any:
        answer = await http.get("/api/jobs/admin/dlq/", headers=headers[tenant])
        return [letter["tenant_id"] for letter in answer.json()["dlq_items"]]

    turns = [tenant for _ in range(ROUNDS) for tenant in OWN]
    ran, called, reviewed = await asyncio.gather(
        *(asyncio.gather(*map(ask, turns)) for ask in (run, call, review))
    )

    assert ran == [OWN[tenant] for tenant in turns]
    assert called == [[OWN[tenant]] * 2 for tenant in turns]
    assert reviewed == [OWN[tenant][::-1] for tenant in turns]
    psql = await asyncpg.connect(owner_url)
    sessions = "select count(*) from pg_stat_activity where usename = 'forge_api'"
    assert await psql.fetchval(sessions) == 1
    await psql.close()
    await http.aclose()
