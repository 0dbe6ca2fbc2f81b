"""What the database does to a handler is not the handler's failure: no attempt is used up."""

import asyncio
from typing import Any

import asyncpg
import pytest

from forge import Forge, JobContext, JobFailed
from forge.store.connection.database import Database
from forge.store.connection.link import SessionOptions
from forge.store.connection.tenant import Callers
from forge.store.statement import Statement
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until

OTHERS = (
    "select pg_terminate_backend(pid) from pg_stat_activity "
    "where datname = current_database() and pid <> pg_backend_pid()"
)
LEVEL: Statement[str] = Statement(
    "select current_setting('transaction_isolation') as level", (), lambda found: found[0]["level"]
)


@pytest.fixture(autouse=True)
async def effects(psql: Any) -> None:
    await psql.execute("create table effects (n int)")
    await psql.execute("insert into effects values (0)")


async def test_a_write_to_a_database_that_turned_read_only_costs_no_attempt(
    app: Forge, work: Work, psql: Any
) -> None:
    """Fault 54: it may be tried once, and is, when the database accepts writes again."""
    is_read_only, errors = asyncio.Event(), []

    @app.job(max_attempts=1)
    async def write(ctx: JobContext) -> None:
        await is_read_only.wait()
        try:
            await ctx.db.execute("insert into effects values (1)")
        except asyncpg.PostgresError as error:
            errors.append(error)
            raise

    handle = await write.dispatch()
    worker = await work(app)
    await until(lambda: _is(handle, "running"), 10, "it runs")

    await _set(psql, "default_transaction_read_only", "on")
    is_read_only.set()
    await until(lambda: errors, 10, "its write was refused")
    await until(lambda: not worker.runner.running, 10, "the worker has judged the error")
    await _set(psql, "default_transaction_read_only", "off")
    await handle.result(30)

    assert [type(error) for error in errors] == [asyncpg.ReadOnlySQLTransactionError]
    assert await _paid(psql) == (1, 1, ["lost"])


async def test_a_handler_s_own_read_only_transaction_costs_an_attempt(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(max_attempts=1)
    async def write(ctx: JobContext) -> None:
        async with ctx.db.acquire() as conn, conn.transaction(readonly=True):
            await conn.execute("insert into effects values (1)")

    await work(app)
    handle = await write.dispatch()

    with pytest.raises(JobFailed, match="read-only transaction"):
        await handle.result(20)
    assert await _paid(psql) == (1, 0, ["dead_letter"])


@pytest.mark.parametrize("pooler", [False, True], ids=["plain", "behind a pooler"])
async def test_forge_s_own_statements_run_at_read_committed_whatever_the_default_is(
    pooler: bool, database_url: str, psql: Any
) -> None:
    await _set(psql, "default_transaction_isolation", "serializable")
    database = Database(database_url, session=SessionOptions(Callers(), pooler=pooler))
    link = database.link()

    levels = [await link.run(LEVEL), await database.run(LEVEL)]
    users = await (await database.users()).fetchval("show transaction_isolation")

    await link.close()
    await database.close()
    assert levels == ["read committed"] * 2
    assert users == "serializable"


async def test_jobs_run_where_every_transaction_is_serializable(
    make_app: MakeApp, work: Work, psql: Any
) -> None:
    await _set(psql, "default_transaction_isolation", "serializable")
    apps = [make_app(batch_size=2), make_app(batch_size=2)]
    for app in apps:

        @app.job(max_attempts=1)
        async def count(ctx: JobContext, n: int) -> None:
            async with ctx.complete_in_transaction() as conn:
                await conn.execute("insert into effects values ($1)", n)

        await work(app)

    await apps[0].dispatch_many("count", range(1, 41))

    await until(lambda: _all_completed(psql), 60, "all are completed")
    assert await psql.fetchval("select count(distinct n) from effects") == 41
    assert await psql.fetchval("select count(*) from effects") == 41
    assert await psql.fetchval("select max(attempts) from forge_jobs") == 1


async def test_a_conflict_in_the_transaction_of_a_completion_costs_no_attempt(
    app: Forge, work: Work, psql: Any
) -> None:
    await _set(psql, "default_transaction_isolation", "serializable")
    leases: list[int] = []

    @app.job(max_attempts=1)
    async def count(ctx: JobContext) -> None:
        leases.append(ctx.lease)
        async with ctx.complete_in_transaction() as conn:
            seen = await conn.fetchval("select n from effects")
            if ctx.lease == 1:
                await psql.execute("update effects set n = 10")
            await conn.execute("update effects set n = $1", seen + 1)

    await work(app)
    await (await count.dispatch()).result(30)

    assert leases == [1, 2]
    assert await psql.fetchval("select n from effects") == 11
    assert await _paid(psql) == (1, 1, ["lost"])


async def test_a_conflict_that_the_handler_catches_itself_is_as_the_driver_raised_it(
    app: Forge, work: Work, psql: Any
) -> None:
    await _set(psql, "default_transaction_isolation", "serializable")

    @app.job(max_attempts=1)
    async def count(ctx: JobContext) -> None:
        for turn in range(2):
            try:
                async with ctx.complete_in_transaction() as conn:
                    seen = await conn.fetchval("select n from effects")
                    if turn == 0:
                        await psql.execute("update effects set n = 10")
                    await conn.execute("update effects set n = $1", seen + 1)
                return
            except asyncpg.SerializationError:
                continue

    await work(app)
    await (await count.dispatch()).result(30)

    assert await psql.fetchval("select n from effects") == 11
    assert await _paid(psql) == (1, 0, [])


async def test_a_completion_that_meets_a_lock_timeout_costs_no_attempt(
    database_url: str, work: Work, psql: Any, make_app: MakeApp
) -> None:
    await _set(psql, "lock_timeout", "100ms")
    app, is_locked, has_failed = make_app(), asyncio.Event(), asyncio.Event()

    @app.job(max_attempts=1)
    async def finish(ctx: JobContext) -> None:
        await is_locked.wait()
        try:
            async with ctx.complete_in_transaction():
                pass
        except asyncpg.LockNotAvailableError:
            has_failed.set()
            raise

    handle = await finish.dispatch()
    await work(app)
    await until(lambda: _is(handle, "running"), 10, "it runs")
    async with psql.transaction():
        await psql.execute("select from forge_jobs for update")
        is_locked.set()
        await asyncio.wait_for(has_failed.wait(), 10)

    await handle.result(30)
    assert await _paid(psql) == (1, 1, ["lost"])


async def _set(psql: Any, name: str, value: str) -> None:
    """Change a default of the database, and end the sessions that still have the former one."""
    database = await psql.fetchval("select current_database()")
    await psql.execute(f"alter database {database} set {name} = '{value}'")
    await psql.execute(OTHERS)


async def _is(handle: Any, status: str) -> bool:
    return bool((await handle.get()).status == status)


async def _all_completed(psql: Any) -> bool:
    left = "select count(*) from forge_jobs where status <> 'completed'"
    return await psql.fetchval(left) == 0


async def _paid(psql: Any) -> tuple[int, int, list[str]]:
    row = await psql.fetchrow("select attempts, crashes from forge_jobs")
    past = await psql.fetch("select outcome from forge_attempts order by lease")
    return row["attempts"], row["crashes"], [each["outcome"] for each in past]
