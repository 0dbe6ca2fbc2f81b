"""forge_api may dispatch and read, forge_worker may run jobs: the database enforces it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from forge import Forge, JobContext, JobFailed, StatementRefused
from forge.store import audit, jobs
from forge.store.connection.database import Database
from forge.store.roles import grant_roles, roles_as_sql
from tests.apps import working
from tests.faults.kit.process import until

Refused = asyncpg.InsufficientPrivilegeError


@pytest.fixture
async def granted(database: Database) -> Database:
    await grant_roles(database)
    return database


@pytest.fixture
async def api(granted: Database) -> AsyncIterator["asyncpg.Connection[Any]"]:
    conn = await asyncpg.connect(as_role("forge_api", granted.url))
    yield conn
    await conn.close()


@pytest.fixture
async def worker(granted: Database) -> AsyncIterator["asyncpg.Connection[Any]"]:
    conn = await asyncpg.connect(as_role("forge_worker", granted.url))
    yield conn
    await conn.close()


@pytest.fixture
async def stranger(database_url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """The owner of the tables, who has made a role without rights: forge_stranger."""
    conn = await asyncpg.connect(database_url)
    await conn.execute("create role forge_stranger login")
    yield conn
    await conn.execute("reset role; drop owned by forge_stranger; drop role forge_stranger")
    await conn.close()


@pytest.fixture
async def api_app(granted: Database) -> AsyncIterator[Forge]:
    """An app that logs in as forge_api."""
    async with app_of("forge_api", granted.url) as app:
        yield app


@asynccontextmanager
async def app_of(role: str, url: str) -> AsyncIterator[Forge]:
    async with Forge(database_url=as_role(role, url)) as app:

        @app.job(idempotent="input.n")
        async def once(ctx: JobContext, input: dict) -> int:
            return input["n"]

        @app.job
        async def plain(ctx: JobContext, input: dict) -> None:
            ctx.progress(10)

        @app.job(max_attempts=1)
        async def broken(ctx: JobContext, input: dict) -> None:
            raise LookupError("nothing there")

        yield app


def as_role(role: str, url: str) -> str:
    return url.replace("//forge@", f"//{role}@")


async def test_each_login_acts_with_its_role(api: Any, worker: Any) -> None:
    assert await api.fetchval("select current_user") == "forge_api"
    assert await worker.fetchval("select current_user") == "forge_worker"


async def test_granting_twice_and_at_once_changes_nothing(granted: Database, psql: Any) -> None:
    rights = "select relname, relacl::text from pg_class where relname like 'forge%' order by 1"
    before = await psql.fetch(rights)

    await grant_roles(granted)
    await asyncio.gather(*(grant_roles(granted) for _ in range(8)))

    assert any("forge_api" in (row["relacl"] or "") for row in before)
    assert await psql.fetch(rights) == before


async def test_the_script_runs_by_hand_too(database: Database, database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    await conn.execute(roles_as_sql())
    await conn.execute(roles_as_sql())
    await conn.close()

    api = await asyncpg.connect(as_role("forge_api", database_url))
    assert await api.fetchval("select count(*) from forge_jobs") == 0
    await api.close()


async def test_a_role_without_the_right_to_grant_gets_advice(
    database: Database, stranger: "asyncpg.Connection[Any]"
) -> None:
    await stranger.execute("grant all on all tables in schema public to forge_stranger")

    with pytest.raises(StatementRefused, match="as the owner of Forge's tables"):
        await grant_roles(Database(as_role("forge_stranger", database.url)))


async def test_every_table_is_granted_to_both(granted: Database, database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    missing = await conn.fetch(
        "select relname, role from pg_class, unnest(array['forge_api', 'forge_worker']) as role "
        "where relkind = 'r' and relname like 'forge\\_%' and relname <> 'forge_signing_keys' "
        "and not has_table_privilege(role, oid, 'select')"
    )
    await conn.close()

    assert missing == []


async def test_other_roles_may_not_read(
    granted: Database, stranger: "asyncpg.Connection[Any]"
) -> None:
    await stranger.execute("set role forge_stranger")

    with pytest.raises(Refused):
        await stranger.fetch("select from forge_jobs")


async def test_no_statement_of_the_api_runs_for_ever(granted: Database, api: Any) -> None:
    assert await api.fetchval("show statement_timeout") == "30s"


async def test_a_connection_limit_that_was_set_stays(granted: Database, psql: Any) -> None:
    name = await psql.fetchval("select current_database()")
    await psql.execute(f"alter role forge_api in database \"{name}\" set statement_timeout = '5s'")

    await grant_roles(granted)

    conn = await asyncpg.connect(as_role("forge_api", granted.url))
    assert await conn.fetchval("show statement_timeout") == "5s"
    await conn.close()


@pytest.mark.parametrize(
    "statement",
    [
        "update forge_jobs set status = 'cancelled'",
        "update forge_jobs set priority = 100",
        "update forge_jobs set input = '{}'",
        "delete from forge_jobs",
        "truncate forge_jobs",
        "insert into forge_jobs (job_type, status) values ('plain', 'completed')",
        "insert into forge_jobs (job_type, lease) values ('plain', 1)",
        "insert into forge_jobs (job_type, attempts) values ('plain', 1)",
        "insert into forge_jobs (job_type, worker_id) values ('plain', forge_uuidv7())",
        "insert into forge_jobs (job_type, created_at) values ('plain', now())",
        "insert into forge_jobs (job_type, output) values ('plain', '{}')",
        "select from forge_jobs for update",
        "update forge_idempotency_keys set key = 'x'",
        "update forge_idempotency_keys set tenant_id = 1",
        "delete from forge_idempotency_keys",
        "insert into forge_job_types (name) values ('mine')",
        "update forge_job_types set priority = 100",
        "insert into forge_workers (id) values (forge_uuidv7())",
        "delete from forge_workers",
        "insert into forge_attempts (job_id) values (forge_uuidv7())",
        "delete from forge_attempt_logs",
        "update forge_dead_letters set payload = '{}'",
        "delete from forge_dead_letters",
        "insert into forge_dead_letter_counts (fingerprint) values ('mine')",
        "update forge_dead_letter_counts set letters = 0",
        "insert into forge_statistics (minute, job_type, queue, failed) values (now(), '', '', 9)",
        "update forge_statistics set failed = 0",
        "delete from forge_tenant_statistics",
        "update forge_audit_events set actor = 'nobody'",
        "delete from forge_audit_events",
        "insert into forge_audit_events (event, created_at) values ('mine', now())",
        "insert into forge_outbox (job_id) values (forge_uuidv7())",
        "delete from forge_outbox",
        "update forge_pauses set until = now()",
        "insert into forge_pauses (type, reason, created_at) values ('x', 'y', now())",
        "insert into forge_pauses (type, reason) values ('x', 'y')",
        "update forge_workers set drained_at = now()",
        "select forge_set_drained(null, true, 'ann', null)",
        "select * from forge_signing_keys",
        "update forge_schedules set lease = 0",
        "drop table forge_jobs",
        "alter table forge_jobs disable trigger all",
        "create or replace function forge_refuse_job() returns trigger language sql as ''",
        "insert into forge_migrations (version, name) values (99, 'mine')",
    ],
)
async def test_the_api_moves_nothing(api: Any, api_app: Forge, statement: str) -> None:
    await api_app.dispatch("plain", {"n": 1})

    with pytest.raises(Refused):
        await api.execute(statement)


async def test_the_verbs_of_a_worker_are_refused_to_the_api(granted: Database) -> None:
    async with app_of("forge_api", granted.url) as app:
        handle = await app.dispatch("plain", {"n": 1})
        database = Database(as_role("forge_api", granted.url))

        for verb in (
            jobs.cancel([handle.id], None, None),
            jobs.erase([handle.id], None),
            jobs.give_up([handle.id], None),
            jobs.reschedule([handle.id], None, None),
        ):
            with pytest.raises(StatementRefused, match="permission denied"):
                await database.run(verb)
        await database.close()


async def test_the_api_dispatches_every_way(api: Any, api_app: Forge, worker: Any) -> None:
    await worker.execute(
        "insert into forge_job_types (name, idempotent) values ('elsewhere', 'input.n')"
    )
    everything: dict[str, Any] = {
        "priority": "high",
        "scheduled_at": datetime.now(UTC),
        "tenant_id": 1,
        "correlation_id": uuid4(),
        "queue": "q",
        "tags": ["a"],
        "expires_at": datetime(2140, 1, 1, tzinfo=UTC),
        "auth": {},
        "meta": {},
        "traceparent": "00",
        "payload_version": "2.0",
        "retry_of": uuid4(),
        "parent_id": uuid4(),
    }

    plain = await api_app.dispatch("plain", {"n": 1}, **everything)
    once = await api_app.dispatch("once", {"n": 1})
    again = await api_app.dispatch("once", {"n": 1})
    many = await api_app.dispatch_many("plain", ({"n": n} for n in range(10)), **everything)
    keyed = await api_app.dispatch_many("once", ({"n": n} for n in range(10)))
    by_name = await api_app.dispatch("elsewhere", {"n": 1})
    await api.execute("select set_config('forge.tenant_id', '*', false)")
    by_sql = await api.fetchval("""select forge_dispatch('elsewhere', '{"n": 1}')""")
    request = await api_app.cancel(plain.id)

    assert (await plain.get()).queue == "q"
    assert (once.id, again.deduplicated) == (again.id, True)
    assert (many, keyed) == (10, 9)
    assert by_sql == by_name.id
    assert (await request.get()).job_type == "forge.cancel"


async def test_the_api_writes_and_reads_the_audit(granted: Database) -> None:
    database = Database(as_role("forge_api", granted.url))

    await database.run(audit.add("job_cancelled", "ann", 1, uuid4(), "why not"))

    async with database.acquire() as conn:
        assert await conn.fetchval("select actor from forge_audit_events") == "ann"
    await database.close()


async def test_a_worker_needs_only_its_own_role(granted: Database, api_app: Forge) -> None:
    async with app_of("forge_worker", granted.url) as app, working(app):
        done = await api_app.dispatch("once", {"n": 3})
        failed = await api_app.dispatch("broken", {"n": 3})
        later = await api_app.dispatch("plain", {"n": 3}, delay="1h")
        moved = await api_app.dispatch("plain", {"n": 3}, delay="1h")
        assert await done.result(30) == 3
        with pytest.raises(JobFailed, match="nothing there"):
            await failed.result(30)
        for request in (
            await api_app.cancel(later.id, reason="not needed"),
            await api_app.delete(done.id),
            await api_app.run_now(moved.id),
        ):
            await request.result(30)
        assert await moved.result(30) is None
        assert (await later.get()).status == "cancelled"
        assert (await failed.get()).status == "dead_letter"


async def test_a_worker_does_not_change_the_tables(worker: Any) -> None:
    for statement in (
        "drop table forge_jobs",
        "alter table forge_jobs disable trigger all",
        "truncate forge_jobs",
        "insert into forge_migrations (version, name) values (99, 'mine')",
    ):
        with pytest.raises(Refused):
            await worker.execute(statement)


async def test_grants_give_way_to_transactions_that_lock_the_tables_in_another_order(
    granted: Database, psql: Any
) -> None:
    for table in ("forge_jobs", "forge_schedules"):
        await psql.execute(f"drop policy forge_worker on {table}")
    other = await asyncpg.connect(granted.url)

    async with other.transaction():
        await other.execute("select from forge_schedules limit 1")
        granting = asyncio.create_task(grant_roles(granted))
        waits = "select count(*) from pg_locks where not granted"
        await until(lambda: psql.fetchval(waits), 30, "the grants wait for the second table")
        # They hold the first one.
        await other.execute("select from forge_jobs limit 1")
    await granting

    made = (
        "select count(*) from pg_policies where policyname = 'forge_worker' and tablename like $1"
    )
    assert await psql.fetchval(made, "forge_jobs") == 1
    assert await psql.fetchval(made, "forge_schedules") == 1
    await other.close()
