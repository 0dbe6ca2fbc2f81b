"""A session with a tenant reads and writes only that tenant's rows, tested with SQL."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from forge import Forge, InvalidPayload, JobContext
from forge.store import job_types, jobs
from forge.store.connection.database import Database
from tests.store.row_security.conftest import TABLES, as_role


@pytest.fixture
async def api(filled: Any, database_url: str) -> AsyncIterator[Any]:
    conn = await asyncpg.connect(as_role("forge_api", database_url))
    yield conn
    await conn.close()


async def become(conn: Any, tenant: str) -> None:
    await conn.execute("select set_config('forge.tenant_id', $1, false)", tenant)


@pytest.mark.parametrize("table", TABLES)
async def test_a_tenant_sees_only_its_own_rows(api: Any, table: str) -> None:
    await become(api, "1")

    if table == "forge_outbox":
        seen = await api.fetch(
            "select tenant_id from forge_outbox join forge_jobs on forge_jobs.id = job_id"
        )
        assert await api.fetchval("select count(*) from forge_outbox") == 1
    else:
        seen = await api.fetch(f"select tenant_id from {table}")

    assert [row["tenant_id"] for row in seen] == [1]


@pytest.mark.parametrize("table", TABLES)
async def test_an_operator_sees_all(api: Any, table: str) -> None:
    await become(api, "*")

    assert await api.fetchval(f"select count(*) from {table}") == 3


async def test_a_tenant_sees_only_its_own_statistics(api: Any, psql: Any) -> None:
    await psql.execute("insert into forge_statistics values (now(), 'export', 'default')")
    await psql.execute("insert into forge_tenant_statistics values (now(), 1), (now(), 2)")

    await become(api, "1")
    assert await api.fetch("select * from forge_statistics") == []
    assert await api.fetchval("select array_agg(tenant_id) from forge_tenant_statistics") == [1]
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        await api.execute(
            "insert into forge_tenant_statistics (minute, tenant_id, reprocessed) "
            "values (now(), 2, 9)"
        )

    await become(api, "*")
    assert await api.fetchval("select count(*) from forge_statistics") == 1
    assert await api.fetchval("select count(*) from forge_tenant_statistics") == 2


async def test_every_table_with_a_tenant_is_secured(psql: Any, filled: Any) -> None:
    found = await psql.fetch(
        "select relname from pg_class join pg_attribute on attrelid = pg_class.oid "
        "where relkind = 'r' and relname like 'forge\\_%' and attname = 'tenant_id' "
        "and not relrowsecurity"
    )

    assert found == []


@pytest.mark.parametrize("tenant", ["2", "null"])
@pytest.mark.parametrize(
    "statement",
    [
        "insert into forge_jobs (job_type, tenant_id) values ('plain', {})",
        "insert into forge_audit_events (event, tenant_id) values ('x', {})",
        "insert into forge_schedules (type, tenant_id) values ('other', {})",
    ],
)
async def test_a_tenant_writes_no_rows_of_others(api: Any, statement: str, tenant: str) -> None:
    await become(api, "1")

    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        await api.execute(statement.format(tenant))


async def test_a_tenant_moves_no_dead_letter_of_others(api: Any, psql: Any) -> None:
    await become(api, "1")

    moved = await api.execute("update forge_dead_letters set status = 'discarded', notes = 'x'")

    assert moved == "UPDATE 1"
    left = await psql.fetch(
        "select tenant_id from forge_dead_letters where status = 'pending_review' order by 1"
    )
    assert [row["tenant_id"] for row in left] == [2, None]


async def test_a_job_of_another_is_not_found_by_its_id(api: Any, filled: Any) -> None:
    await become(api, "1")

    for statement in (jobs.get([filled[2]]), jobs.attempts(filled[2])):
        assert statement.read(await api.fetch(statement.sql, *statement.args)) == []


async def test_the_key_of_another_tenant_reveals_and_blocks_nothing(
    api: Any, filled: Any, psql: Any, database: Database
) -> None:
    app = Forge(database_url=database.url)

    @app.job
    async def plain(ctx: JobContext, input: dict[str, Any]) -> None: ...

    types = [own.job_type for own in app.definitions.values()]
    await database.run(job_types.register(types))
    await become(api, "1")
    notices: list[str] = []
    api.add_log_listener(lambda _, message: notices.append(message.message))

    own = await api.fetchval(
        "select forge_dispatch('plain', idempotency_key => 'k', tenant_id => 1)"
    )
    await become(api, "2")
    theirs = await api.fetchval(
        "select forge_dispatch('plain', idempotency_key => 'k', tenant_id => 2)"
    )
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await api.fetchval("select forge_dispatch('plain', idempotency_key => 'k', tenant_id => 1)")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await api.fetchval("select forge_dispatch('plain', idempotency_key => 'new')")

    assert (own, theirs) == (filled[1], filled[2])
    assert str(filled[1]) not in " ".join(notices[1:])
    await app.close()


async def test_a_setting_that_is_no_number_shows_nothing(api: Any) -> None:
    await become(api, "1 or true")

    with pytest.raises(asyncpg.InvalidTextRepresentationError):
        await api.fetch("select from forge_jobs")


async def test_row_security_cannot_be_switched_off(api: Any) -> None:
    await become(api, "1")
    await api.execute("set row_security = off")

    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        await api.fetch("select * from forge_jobs")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await api.execute("alter table forge_jobs disable row level security")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await api.execute("drop policy forge_tenant on forge_jobs")


async def test_security_definer_functions_reveal_nothing(psql: Any) -> None:
    found = await psql.fetch(
        "select proname from pg_proc where proname like 'forge\\_%' and prosecdef "
        "and prorettype <> 'trigger'::regtype order by 1"
    )

    assert [row["proname"] for row in found] == [
        "forge_caller",
        "forge_demand",
        "forge_is_bound",
        "forge_job_estimates",
        "forge_lane_heads",
        "forge_lane_jobs",
        "forge_set_drained",
        "forge_signs_callers",
        "forge_take_keys",
    ]


async def test_estimates_of_the_whole_are_for_operators(api: Any, psql: Any) -> None:
    await psql.execute("insert into forge_jobs (job_type) select 'x' from generate_series(1, 1000)")
    await psql.execute("analyze forge_jobs")

    await become(api, "*")
    as_operator = await api.fetch("select * from forge_job_estimates()")
    await become(api, "1")
    as_tenant = await api.fetch("select * from forge_job_estimates()")

    assert {row["name"] for row in as_operator} >= {"status", "job_type"}
    assert as_tenant == []


async def test_lanes_are_for_operators(api: Any, psql: Any) -> None:
    await psql.execute("insert into forge_jobs (job_type) values ('x'), ('x'), ('y')")
    jobs = "select jobs.* from forge_lane_jobs($1, 'infinity', $2, 10) as jobs"
    last = UUID(int=2**128 - 1)

    await become(api, "*")
    heads = await api.fetch("select * from forge_lane_heads() where job_type in ('x', 'y')")
    of_lanes = [len(await api.fetch(jobs, head["lane"], last)) for head in heads]
    await become(api, "1")
    as_tenant = await api.fetch("select * from forge_lane_heads()")
    of_tenant = await api.fetch(jobs, heads[0]["lane"], last)

    assert sorted(head["job_type"] for head in heads) == ["x", "y"]
    assert sorted(of_lanes) == [1, 2]
    assert as_tenant == of_tenant == []


async def test_a_reviewer_of_a_tenant_works_with_the_rights_of_the_api(
    api: Any, filled: Any, database: Database, psql: Any
) -> None:
    await become(api, "1")

    async def run(statement: Any) -> Any:
        async with api.transaction():
            return statement.read(await api.fetch(statement.sql, *statement.args))

    async with Forge(database_url=as_role("forge_api", database.url)) as app:
        reviewing = app.dead_letters.running(run)
        (letter,) = (await reviewing.list()).items
        other = await psql.fetchval("select dlq_id from forge_dead_letters where tenant_id = 2")
        with pytest.raises(LookupError):
            await reviewing.get(other)
        with pytest.raises(LookupError):
            await reviewing.reprocess(other)
        with pytest.raises(LookupError):
            await reviewing.discard(other, notes="x")
        made = await reviewing.reprocess(letter.dlq_id, actor="ann")

        assert (await reviewing.statistics()).total == 1
        assert [group.letters for group in await reviewing.groups(status=None)] == [1]
    row = await psql.fetchrow("select * from forge_jobs where id = $1", made.new_job_id)
    assert (row["tenant_id"], row["retry_of"]) == (1, letter.job_id)
    events = "select tenant_id, event from forge_audit_events where dlq_id is not null order by id"
    assert [tuple(event) for event in await psql.fetch(events)] == [
        (1, "job_dlq_reprocess_requested"),
        (1, "job_dlq_reprocess_success"),
    ]


async def test_many_are_dispatched_without_copy_where_row_security_holds(
    filled: Any, database: Database, psql: Any
) -> None:
    async with Forge(database_url=as_role("forge_api", database.url)) as app:

        @app.job
        async def plain(ctx: JobContext, input: dict[str, Any]) -> None: ...

        made = await app.dispatch_many("plain", ({"n": n} for n in range(1200)), delay="1h")
        with pytest.raises(InvalidPayload, match="input 700"):
            await app.dispatch_many(
                "plain", ({"n": n if n != 700 else {n}} for n in range(1200)), tenant_id=5
            )

    assert made == 1200
    waiting = "select count(distinct input) from forge_jobs where scheduled_at > now() + '59m'"
    assert await psql.fetchval(waiting) == 1200
    assert await psql.fetchval("select count(*) from forge_jobs where tenant_id = 5") == 0
