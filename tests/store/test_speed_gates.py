"""Costs as counts instead of times: what a job and an idle worker cost the database."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from forge import Config, Forge, JobContext
from forge.store.notify import worker_channel
from tests.apps import working
from tests.faults.kit.process import until
from tests.store.placing import Psql

JOBS = 2000
# From dispatch to completed: the row, two new versions of it, and their index entries.
MAX_WAL_BYTES = 1300
# Dispatch, claim and completion go in batches of ten or more.
MAX_STATEMENTS = 0.35
MAX_COMMITS = 0.35
# Per heartbeat of two seconds: the heartbeat, a look for work, and room for a chore.
MAX_WHILE_IDLE = 4

COUNTED = """select coalesce(sum(calls), 0)::int as calls, coalesce(sum(wal_bytes), 0)::int as wal
from pg_stat_statements
where dbid = (select oid from pg_database where datname = current_database())
  and query not like '%pg_stat_statements%' and query not like '%as not_done%'"""
# With commits, which pg_stat_statements does not count, and without images of whole pages, whose
# number depends on background processes.
RECORDS = """select sum(record_size)::int as wal_bytes
from pg_get_wal_stats($1, pg_current_wal_flush_lsn(), true)"""
MOVE = "update forge_jobs set status = $1, worker_id = $2, lease = 1, attempts = 1"
NOT_DONE = "select count(*) as not_done from forge_jobs where status <> 'completed'"


@pytest.fixture(autouse=True)
async def statistics(psql: "Psql[Any]") -> None:
    await psql.execute("create extension pg_stat_statements")


async def test_a_job_costs_little_wal_and_a_fraction_of_a_statement(
    psql: "Psql[Any]", database_url: str
) -> None:
    app = _app(database_url)
    await psql.execute("checkpoint")
    await psql.execute("select pg_stat_statements_reset()")

    async with working(app):
        await app.dispatch_many("noop", ({"n": n} for n in range(JOBS)))
        await until(lambda: _none_left(psql), 60, "all are completed")

    counted = await psql.fetchrow(COUNTED)
    assert JOBS * 100 < counted["wal"] <= JOBS * MAX_WAL_BYTES
    assert 0 < counted["calls"] <= JOBS * MAX_STATEMENTS


async def test_the_indexes_of_filters_cost_only_the_jobs_that_are_in_them(
    psql: "Psql[Any]", database_url: str
) -> None:
    app = _app(database_url)
    await psql.execute("create extension pg_walinspect")

    async def cost() -> int:
        await psql.execute("truncate forge_jobs")
        await psql.execute("checkpoint")
        before = await psql.fetchval("select pg_current_wal_insert_lsn()")
        await app.dispatch_many("noop", ({"n": n} for n in range(JOBS)))
        await psql.execute(MOVE, "running", UUID(int=1))
        await psql.execute(MOVE, "completed", UUID(int=1))
        return await psql.fetchval(RECORDS, before)

    with_indexes = await cost()
    names = ("parent", "original", "correlation", "key")
    await psql.execute(";".join(f"drop index forge_jobs_{name}" for name in names))
    without = await cost()
    await app.close()

    assert with_indexes <= without * 1.01


async def test_a_job_costs_a_fraction_of_a_commit(psql: "Psql[Any]", database_url: str) -> None:
    app = _app(database_url)
    asked = 0

    async def none_left() -> bool:
        nonlocal asked
        asked += 1
        return await _none_left(psql)

    before = await _commits(psql)
    async with working(app):
        await app.dispatch_many("noop", ({"n": n} for n in range(JOBS)))
        await until(none_left, 60, "all are completed")
    # A server process reports what it did at the latest when it ends.
    await until(lambda: _is_alone(psql), 10, "all connections but this one are closed")

    spent = await _commits(psql) - before - asked
    assert 0 < spent <= JOBS * MAX_COMMITS


async def test_concurrent_dispatches_cost_no_more_wal_than_lone_ones(
    psql: "Psql[Any]", database_url: str
) -> None:
    app = _app(database_url)
    await psql.execute("create extension pg_walinspect")

    async def cost(callers: int) -> tuple[int, int]:
        await psql.execute("truncate forge_jobs")
        await psql.execute("checkpoint")
        await psql.execute("select pg_stat_statements_reset()")
        before = await psql.fetchval("select pg_current_wal_insert_lsn()")
        for _ in range(400 // callers):
            await asyncio.gather(*(app.dispatch("noop", {"n": n}) for n in range(callers)))
        calls = (await psql.fetchrow(COUNTED))["calls"]
        return await psql.fetchval(RECORDS, before), calls

    await app.dispatch("noop", {"n": 0})
    alone, together = await cost(1), await cost(40)
    await app.close()

    assert 0 < together[0] < alone[0]
    assert 0 < together[1] <= 0.2 * alone[1]


async def test_an_idle_worker_runs_few_statements(psql: "Psql[Any]", database_url: str) -> None:
    app = _app(database_url)
    beats: asyncio.Queue[None] = asyncio.Queue()

    def beat(*_: Any) -> None:
        beats.put_nowait(None)

    async with working(app) as worker:
        channel = worker_channel(worker.registration.id)
        await psql.add_listener(channel, beat)
        for _ in range(2):  # until the worker knows that its own listener hears
            await asyncio.wait_for(beats.get(), 10)
        await psql.execute("select pg_stat_statements_reset()")
        for _ in range(3):
            await asyncio.wait_for(beats.get(), 10)
        counted = await psql.fetchrow(COUNTED)
        await psql.remove_listener(channel, beat)

    assert 3 <= counted["calls"] <= 3 * MAX_WHILE_IDLE


def _app(database_url: str) -> Forge:
    app = Forge(Config(worker={"metrics_port": "off"}), database_url=database_url)

    @app.job
    async def noop(ctx: JobContext, input: dict) -> None: ...

    return app


async def _none_left(psql: "Psql[Any]") -> bool:
    return bool(await psql.fetchval(NOT_DONE) == 0)


async def _is_alone(psql: "Psql[Any]") -> bool:
    others = """select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()"""
    return bool(await psql.fetchval(others) == 0)


async def _commits(psql: "Psql[Any]") -> int:
    await psql.execute("select pg_stat_force_next_flush()")
    await psql.execute("select pg_stat_clear_snapshot()")
    commits: int = await psql.fetchval(
        "select xact_commit from pg_stat_database where datname = current_database()"
    )
    return commits
