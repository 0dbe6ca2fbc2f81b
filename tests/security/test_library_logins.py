"""A web process that logs in as forge_api: what the library does there, and what it needs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import psycopg
import pytest

from forge import ActionContext, Config, Forge, JobContext, MutationContext, StatementRefused
from forge.store.connection.database import Database
from forge.store.roles import grant_roles
from tests.dead_letters.letters import fill
from tests.security.callers import SECRET, register
from tests.store.row_security.conftest import as_role

Refused = asyncpg.InsufficientPrivilegeError
OTHER = "a secret that the database was never given"


@pytest.fixture(params=[None, SECRET], ids=["plain", "signed"])
async def secret(request: pytest.FixtureRequest, database: Database) -> Any:
    """The [auth] secret with which the roles were made, or none."""
    if request.param is None:
        await grant_roles(database)
    else:
        await register(database, request.param)
    return request.param


@asynccontextmanager
async def web(database: Database, secret: str | None) -> AsyncIterator[Forge]:
    """An app in a web process, with a job and a schedule by the clock."""
    config = Config(auth={"secret": secret} if secret else {})
    async with Forge(config, database_url=as_role("forge_api", database.url)) as app:

        @app.job(idempotent="input.n")
        async def once(ctx: JobContext, input: dict[str, int]) -> None: ...

        @app.job
        async def plain(ctx: JobContext, input: dict[str, int]) -> None: ...

        @app.cron("0 3 * * *")
        async def nightly(ctx: Any) -> None: ...

        yield app


async def test_the_library_is_an_operator_on_its_own_connections(
    database: Database, secret: str | None, psql: Any
) -> None:
    async with web(database, secret) as app:
        await app.dispatch("plain", {"n": 1}, tenant_id=7, auth={"name": "anyone"})
        await app.dispatch("plain", {"n": 2}, tenant_id=8)
        without = await app.dispatch("once", {"n": 3})
        await app.dispatch_many("plain", [{"n": 4}, {"n": 5}], tenant_id=7)
        await app.schedules.plant((await (await app.session()).database()).run)
        await app.schedules.ensure("nightly", "of seven", tenant_id=7)
        await fill(psql, 1, tenant_id=7)
        await fill(psql, 1, tenant_id=None)

        assert (await without.get()).tenant_id is None
        assert {row.tenant_id for row in await app.schedules.list()} == {None, 7}
        assert {row.tenant_id for row in (await app.dead_letters.list()).items} == {None, 7}
        await app.cancel(without.id, auth={"actor": "ann"})

    found = await psql.fetch("select tenant_id, count(*) from forge_jobs group by 1 order by 1")
    assert [tuple(row) for row in found] == [(7, 3), (8, 1), (None, 2)]


async def test_a_borrowed_connection_sets_its_caller(
    database: Database, secret: str | None, psql: Any
) -> None:
    async with web(database, secret) as app:
        conn = await asyncpg.connect(as_role("forge_api", database.url))
        with pytest.raises(Refused, match=r"call `await app\.act_for\(conn\)`"):
            async with conn.transaction():
                await app.dispatch("plain", {"n": 1}, conn=conn)
        async with conn.transaction():
            await app.act_for(conn)
            await app.dispatch("plain", {"n": 2}, conn=conn)
            await app.dispatch("plain", {"n": 3}, conn=conn, tenant_id=7)
        async with conn.transaction():
            await app.act_for(conn, tenant_id=7)
            await app.dispatch("once", {"n": 4}, conn=conn, tenant_id=7)
            await app.dispatch_many("plain", [{"n": 5}], conn=conn, tenant_id=7)

        async def dispatch_as(acts: dict[str, Any], **options: Any) -> None:
            async with conn.transaction():
                await app.act_for(conn, **acts)
                await app.dispatch("plain", {"n": 6}, conn=conn, **options)

        with pytest.raises(Refused, match="row-level security"):
            await dispatch_as({"tenant_id": 7}, tenant_id=8)
        ann, bob = {"name": "ann"}, {"name": "bob"}
        with pytest.raises(Refused, match="the auth of another caller"):
            await dispatch_as({"tenant_id": 7, "auth": ann}, tenant_id=7, auth=bob)
        # Nothing of it outlasts the transaction.
        assert await conn.fetchval("select count(*) from forge_jobs") == 0
        await conn.close()

    made = await psql.fetch("select input ->> 'n' as n from forge_jobs order by 1")
    assert [row["n"] for row in made] == ["2", "3", "4", "5"]


async def test_a_sync_connection_sets_its_caller(
    database: Database, secret: str | None, psql: Any
) -> None:
    async with web(database, secret) as app:
        with psycopg.connect(as_role("forge_api", database.url)) as conn:
            app.sync.act_for(conn, tenant_id=7)
            app.sync.dispatch("plain", {"n": 1}, conn=conn, tenant_id=7)
            app.sync.dispatch("once", {"n": 1}, conn=conn, tenant_id=7)

    assert await psql.fetchval("select count(*) from forge_jobs where tenant_id = 7") == 2


@pytest.mark.parametrize("given", [None, OTHER], ids=["no secret", "another secret"])
async def test_a_rejected_caller_gets_an_error_with_a_remedy(
    database: Database, given: str | None
) -> None:
    await register(database, SECRET)

    async with web(database, given) as app:
        with pytest.raises(StatementRefused, match=r"set \[auth\] secret"):
            await app.dispatch("plain", {"n": 1})


async def test_actions_see_rows_once_they_act_for_their_caller(
    database: Database, secret: str | None, psql: Any
) -> None:
    async with web(database, secret) as app:

        @app.action
        async def look(ctx: ActionContext) -> list[list[int]]:
            seen = "select tenant_id from forge_jobs"
            async with ctx.db.acquire() as conn, conn.transaction():
                before = [row[0] for row in await conn.fetch(seen)]
                await ctx.act_for_caller(conn)
                return [before, [row[0] for row in await conn.fetch(seen)]]

        for tenant in (1, 2):
            await app.dispatch("plain", {"n": tenant}, tenant_id=tenant)

        assert await look.call(auth={"name": "ann"}, tenant_id=1) == [[], [1]]


async def test_a_mutation_reviews_dead_letters_in_the_name_of_its_caller(
    database: Database, secret: str | None, psql: Any
) -> None:
    async with web(database, secret) as app:

        @app.mutation
        async def review(ctx: MutationContext, actor: str) -> str:
            (letter,) = (await app.dead_letters.list(conn=ctx.db)).items
            made = await app.dead_letters.reprocess(letter.dlq_id, actor=actor, conn=ctx.db)
            return str(made.new_job_id)

        await fill(psql, 1, tenant_id=7)
        await psql.execute('update forge_jobs set auth = \'{"name": "bob"}\'')
        await fill(psql, 1, tenant_id=8)

        with pytest.raises(Refused, match="cannot write in the name of 'ceo'"):
            await review.call({"actor": "ceo"}, auth={"name": "ann"}, tenant_id=7)
        made = await review.call({"actor": "ann"}, auth={"name": "ann"}, tenant_id=7)

    assert (
        await psql.fetchval("select auth ->> 'name' from forge_jobs where id = $1", made) == "ann"
    )
