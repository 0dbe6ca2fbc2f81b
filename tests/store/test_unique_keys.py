"""A key belongs to one job per tenant, whatever inserts the rows."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from forge import Forge, JobContext
from forge.store import idempotency_keys
from forge.store.connection.database import Database
from forge.store.roles import grant_roles
from tests.faults.kit.process import until
from tests.store.row_security.conftest import as_role

INSERT = "insert into forge_jobs (job_type, idempotency_key, tenant_id) values ('plain', $1, $2)"
HOLDER = "select job_id from forge_idempotency_keys where key = 'k'"
Taken = asyncpg.UniqueViolationError


@pytest.fixture
async def other(database_url: str) -> AsyncIterator[Any]:
    """A second session on the same database."""
    conn = await asyncpg.connect(database_url)
    yield conn
    await conn.close()


async def test_a_second_plain_insert_with_the_same_key_is_refused(psql: Any) -> None:
    first = await psql.fetchval(INSERT + " returning id", "k", 1)

    with pytest.raises(Taken, match=f"'k' of tenant 1 already belongs to job {first}") as refused:
        await psql.execute(INSERT, "k", 1)

    assert refused.value.constraint_name == "forge_idempotency_keys_unique"
    assert "use another key" in refused.value.hint
    assert await psql.fetchval(HOLDER) == first
    assert await psql.fetchval("select count(*) from forge_jobs") == 1


@pytest.mark.parametrize("tenant", [None, 7])
async def test_of_two_inserts_at_once_the_second_waits_and_is_refused(
    psql: Any, other: Any, tenant: int | None
) -> None:
    transaction = psql.transaction()
    await transaction.start()
    await psql.execute(INSERT, "k", tenant)
    late = asyncio.create_task(other.execute(INSERT, "k", tenant))
    waiting = "select count(*) from pg_locks where not granted and locktype = 'transactionid'"
    await until(lambda: psql.fetchval(waiting), 20, "the second waits for the first")
    await transaction.commit()

    with pytest.raises(Taken):
        await late

    assert await psql.fetchval("select count(*) from forge_jobs") == 1


async def test_a_key_is_free_again_after_a_rollback(psql: Any) -> None:
    transaction = psql.transaction()
    await transaction.start()
    await psql.execute(INSERT, "k", None)
    await transaction.rollback()

    await psql.execute(INSERT, "k", None)

    assert await psql.fetchval("select count(*) from forge_idempotency_keys") == 1


async def test_tenants_do_not_share_keys_and_jobs_without_keys_take_none(psql: Any) -> None:
    for tenant in (1, 2, None):
        await psql.execute(INSERT, "k", tenant)
    for _ in range(2):
        await psql.execute(INSERT, None, 1)

    assert await psql.fetchval("select count(*) from forge_idempotency_keys") == 3


async def test_copy_holds_keys_too(psql: Any) -> None:
    columns = ["job_type", "idempotency_key"]
    await psql.copy_records_to_table("forge_jobs", records=[("plain", "k")], columns=columns)

    with pytest.raises(Taken):
        await psql.copy_records_to_table(
            "forge_jobs", records=[("plain", "a"), ("plain", "k")], columns=columns
        )
    with pytest.raises(Taken):
        await psql.copy_records_to_table(
            "forge_jobs", records=[("plain", "b"), ("plain", "b")], columns=columns
        )

    assert await psql.fetchval("select array_agg(key) from forge_idempotency_keys") == ["k"]


async def test_dispatch_finds_the_job_that_was_inserted_by_hand(
    database: Database, psql: Any
) -> None:
    async with Forge(database_url=database.url) as app:

        @app.job
        async def plain(ctx: JobContext, input: dict[str, Any]) -> None: ...

        await psql.execute("insert into forge_job_types (name) values ('plain')")
        by_hand = await psql.fetchval(INSERT + " returning id", "k", None)
        found = await app.dispatch("plain", {}, idempotency_key="k")
        by_sql = await psql.fetchval("select forge_dispatch('plain', idempotency_key => 'k')")
        dispatched = await app.dispatch("plain", {}, idempotency_key="other")
        with pytest.raises(Taken):
            await psql.execute(INSERT, "other", None)

    assert (found.id, found.deduplicated, by_sql) == (by_hand, True, by_hand)
    assert not dispatched.deduplicated


async def test_a_key_outlives_its_pruned_job_until_its_own_retention_ends(
    database: Database, psql: Any
) -> None:
    await psql.execute(INSERT, "k", None)
    await psql.execute("delete from forge_jobs")

    with pytest.raises(Taken):
        await psql.execute(INSERT, "k", None)
    assert len(await database.run(idempotency_keys.prune(-1, 10))) == 1
    await psql.execute(INSERT, "k", None)

    assert await psql.fetchval("select count(*) from forge_jobs") == 1


@pytest.mark.parametrize(
    "change",
    [
        "idempotency_key = 'another'",
        "idempotency_key = null",
        "tenant_id = 2",
        "idempotency_key = 'k', tenant_id = null",
    ],
)
async def test_the_key_of_a_job_does_not_change(psql: Any, change: str) -> None:
    await psql.execute(INSERT, "k", 1)

    with pytest.raises(asyncpg.CheckViolationError, match="cannot change its idempotency key"):
        await psql.execute(f"update forge_jobs set {change}")
    await psql.execute("update forge_jobs set idempotency_key = 'k', tenant_id = 1")


async def test_a_job_without_a_key_gets_none_later_but_may_change_its_tenant(psql: Any) -> None:
    await psql.execute(INSERT, None, 1)

    await psql.execute("update forge_jobs set tenant_id = 2")
    with pytest.raises(asyncpg.CheckViolationError):
        await psql.execute("update forge_jobs set idempotency_key = 'k'")


async def test_the_api_takes_keys_of_its_tenant_only_and_none_for_jobs_of_others(
    database: Database, psql: Any
) -> None:
    await grant_roles(database)
    theirs: UUID = await psql.fetchval(INSERT + " returning id", "theirs", 2)
    take = "select * from forge_take_keys(array[$1::bigint], array['k'], array[$2::uuid])"
    api = await asyncpg.connect(as_role("forge_api", database.url))
    await api.execute("select set_config('forge.tenant_id', '1', false)")

    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="tenant 1 cannot take"):
        await api.fetch(take, 2, uuid4())
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="tenant 1 cannot take"):
        await api.fetch(take, None, uuid4())
    with pytest.raises(Taken, match="a job that does not exist yet"):
        await api.fetch(take, 1, theirs)
    for statement in (
        "insert into forge_idempotency_keys (tenant_id, key, job_id) values (1, 'k', $1)",
        "update forge_idempotency_keys set job_id = $1",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied"):
            await api.execute(statement, theirs)
    await api.close()

    assert await psql.fetchval("select count(*) from forge_idempotency_keys") == 1


async def test_jobs_without_keys_touch_no_keys(psql: Any) -> None:
    """The trigger's condition is false: nothing is read, written or queued for these rows."""
    touched = "select idx_scan + seq_scan + n_tup_ins from pg_stat_xact_user_tables "
    touched += "where relname = 'forge_idempotency_keys'"
    async with psql.transaction():
        await psql.execute(
            "insert into forge_jobs (job_type) select 'plain' from generate_series(1, 100)"
        )
        assert await psql.fetchval(touched) in (None, 0)
        await psql.execute(INSERT, "k", None)
        assert await psql.fetchval(touched) > 0
