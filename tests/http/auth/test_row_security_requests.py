"""Row security limits each request to the rows of its tenant."""

import asyncio
import random
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

import forge
from forge import Config, Forge
from forge.core.errors import DatabaseUnavailable, StatementRefused
from forge.http.auth.access import Caller, Identity, Role
from forge.store import jobs
from forge.store.connection.database import Database
from forge.store.connection.link import SessionOptions
from forge.store.connection.tenant import Callers
from forge.store.connection.transaction import transaction
from forge.store.statement import Statement, load, rows
from tests.faults.kit.process import until
from tests.http.conftest import AUTH, SECRET, MakeToken
from tests.http.job_client import add_jobs, dispatched

# No tenant in it: whose rows these are is for the database to say.
ALL: Statement[Any] = Statement(
    "select tenant_id, current_setting('forge.tenant_id', true) as acts_for from forge_jobs "
    "order by tenant_id nulls last",
    (),
    rows,
)
SIGNING = Callers(SECRET)
SLOW: Statement[Any] = Statement("select pg_sleep(60)", (), rows)
TENANTS = (1, 2, None)


@pytest.fixture
async def filled(psql: Any, api_url: str) -> str:
    """A job of each tenant, and one without a tenant; the address of the database as forge_api."""
    for tenant in TENANTS:
        await psql.execute("insert into forge_jobs (job_type, tenant_id) values ('x', $1)", tenant)
    return api_url


async def seen(database: Database, tenant: int | None) -> list[int | None]:
    """Return the tenants that an unfiltered statement sees."""
    return [row["tenant_id"] for row in await database.run(ALL, tenant)]


async def test_unfiltered_statement_sees_only_the_callers_rows(
    filled: str,
) -> None:
    app = Forge(Config(auth=AUTH), database_url=filled)
    roles = frozenset({Role.USER})

    found = {
        tenant: [
            row["tenant_id"] for row in await Caller(Identity("ann", roles, tenant), app).run(ALL)
        ]
        for tenant in (1, 2, 3, None)
    }
    over_all = await Caller(Identity("ann", roles, 1), app).run_over_all(ALL)

    await app.close()
    assert found == {1: [1], 2: [2], 3: [], None: [1, 2, None]}
    assert [row["tenant_id"] for row in over_all] == [1, 2, None]


@pytest.mark.parametrize("pooler", [False, True], ids=["direct", "pooler"])
async def test_tenants_on_a_shared_connection_are_isolated(filled: str, pooler: bool) -> None:
    patience = timedelta(minutes=2)
    session = SessionOptions(SIGNING, pooler=pooler)
    database = Database(filled, session=session, pool_size=1, connect_timeout=patience)
    expected = {1: [1], 2: [2], None: [1, 2, None]}
    turns = [random.choice(TENANTS) for _ in range(300)]

    async def look(tenant: int | None, place: int) -> None:
        if place % 10 == 0:  # what Forge itself borrows is an operator's
            async with database.transaction() as connection:
                shown = [row["tenant_id"] for row in await connection.fetch(ALL.sql)]
            assert shown == expected[None], place
        assert await seen(database, tenant) == expected[tenant], (place, tenant)

    await asyncio.gather(*(look(tenant, place) for place, tenant in enumerate(turns)))

    await database.close()


async def test_tenant_is_set_once_per_connection(filled: str, psql: Any) -> None:
    database = Database(filled, session=SessionOptions(SIGNING), pool_size=2)
    calls: list[str] = []

    async with asyncio.TaskGroup() as both:
        both.create_task(seen(database, 1))
        both.create_task(seen(database, 2))
    for link in database._links._idle:
        connection = link._connection
        assert connection is not None
        connection.add_query_logger(lambda query: calls.append(query.query))
    for _ in range(20):
        await seen(database, 1)
        await seen(database, 2)

    await database.close()
    assert set(calls) == {ALL.sql}
    assert len(calls) == 40


async def test_refused_or_cancelled_statement_resets_the_tenant(filled: str, psql: Any) -> None:
    database = Database(filled, session=SessionOptions(SIGNING), pool_size=1)
    foreign = Statement(
        "insert into forge_jobs (job_type, tenant_id) values ('x', 2) returning id", (), rows
    )

    with pytest.raises(StatementRefused, match="row-level security"):
        await database.run(foreign, 1)
    assert await seen(database, None) == [1, 2, None]

    waiting = asyncio.create_task(database.run(SLOW, 1))
    await until(lambda: _sleeps(psql), 10, "the statement runs")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await seen(database, None) == [1, 2, None]
    assert await seen(database, 2) == [2]

    await database.close()


async def _sleeps(psql: Any) -> bool:
    return bool(
        await psql.fetchval(
            "select count(*) from pg_stat_activity where query like '%pg_sleep(60)%' "
            "and pid <> pg_backend_pid() and state = 'active'"
        )
    )


async def test_new_connection_has_no_tenant(filled: str, psql: Any) -> None:
    database = Database(filled, session=SessionOptions(SIGNING), pool_size=1)
    assert await seen(database, 1) == [1]
    await psql.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'forge_api'"
    )

    for tenant, expected in ((None, [1, 2, None]), (1, [1])):
        try:
            found = await seen(database, tenant)
        except DatabaseUnavailable:
            found = await seen(database, tenant)
        assert found == expected

    await database.close()


@pytest.mark.parametrize("pooler", [False, True], ids=["direct", "pooler"])
async def test_a_transaction_acts_for_a_tenant_and_ends_with_it(filled: str, pooler: bool) -> None:
    database = Database(filled, session=SessionOptions(SIGNING, pooler=pooler), pool_size=1)
    expected = {1: [1], 2: [2], None: [1, 2, None]}

    for tenant in (1, None, 2, None):
        async with transaction(database, "read_committed", tenant) as connection:
            shown = [row["tenant_id"] for row in await connection.fetch(ALL.sql)]
        assert shown == expected[tenant]
        pool = await database.users()
        async with pool.acquire() as connection:
            assert await connection.fetch(ALL.sql) == []

    await database.close()


@forge.mutation
async def look_around(ctx: Any) -> list[int | None]:
    """Read all jobs that the database shows."""
    return [row["tenant_id"] for row in await ctx.db.fetch(ALL.sql)]


@forge.mutation
async def take_over(ctx: Any, whose: int) -> None:
    """Write a job of another tenant."""
    await ctx.db.execute("insert into forge_jobs (job_type, tenant_id) values ('x', $1)", whose)


async def test_mutation_sees_only_the_callers_rows(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, filled: str
) -> None:
    app.register(look_around, take_over)

    async def call(name: str, tenant: int | None, **body: Any) -> httpx.Response:
        headers = token("user", tenant=tenant)
        return await http.post(f"/_api/mutations/{name}", json=body, headers=headers)

    for tenant, expected in ((1, [1]), (None, [1, 2, None]), (2, [2]), (None, [1, 2, None])):
        assert (await call("look_around", tenant)).json() == expected
    assert (await call("take_over", 1, whose=2)).status_code == 500
    assert (await call("look_around", None)).json() == [1, 2, None]


async def test_every_request_finds_the_tenants_rows(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, filled: str
) -> None:
    add_jobs(app)

    async def visit(tenant: int) -> None:
        headers = token("user", "staff", "manager", tenant=tenant)
        own = await dispatched(http, headers, "charge", args={"payment_id": 7})
        again = await dispatched(http, headers, "charge", args={"payment_id": 7})
        shown = (await http.get("/_api/jobs", headers=headers)).json()["items"]
        assert own == again
        assert {job["tenant_id"] for job in shown} == {tenant}
        assert (await http.get(f"/_api/jobs/{own}", headers=headers)).status_code == 200
        other = token("user", tenant=tenant + 100)
        assert (await http.get(f"/_api/jobs/{own}", headers=other)).status_code == 404

    await asyncio.gather(*(visit(tenant) for tenant in range(10, 40)))


async def test_schedule_is_changed_with_the_tenants_row_security(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    @app.schedule("tick")
    async def tick(ctx: Any) -> None: ...

    made = await app.schedules.ensure("tick", every="1h", tenant_id=7)
    headers = token("staff", "manager", tenant=7)

    answer = await http.post(f"/_api/schedules/{made.id}/disable", headers=headers)

    assert answer.json()["enabled"] is False
    row = await psql.fetchrow("select event, tenant_id from forge_audit_events")
    assert tuple(row) == ("schedule_disabled", 7)


async def test_the_owner_of_the_tables_works_as_before(psql: Any, database: Database) -> None:
    await psql.execute("insert into forge_jobs (job_type, tenant_id) values ('x', 2)")

    assert await seen(database, 1) == [2]


async def test_dispatch_for_a_tenant_with_an_outbox(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any, database: Database
) -> None:
    add_jobs(app)
    await psql.execute(load("outbox/enable"))

    job_id = await dispatched(http, token("user", tenant=7))

    found = await database.run(jobs.get([UUID(str(job_id))]))
    assert found[0]["tenant_id"] == 7
    assert await psql.fetchval("select job_id from forge_outbox") == job_id
