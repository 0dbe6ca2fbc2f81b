"""Plans of lists and counts: each reads a bounded part of a large table, by index."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from forge.http.jobs.paging import NEWEST, OLDEST
from forge.http.jobs.read import EXACT_LIMIT, SAMPLE_BLOCKS
from forge.store import listing
from forge.store.connection.database import Database
from forge.store.listing import WINDOW, JobFilter
from forge.store.roles import grant_roles
from forge.store.statement import Statement, load
from tests.store.placing import Psql
from tests.store.plans.crowd import explaining, planned

ROWS = 100_000
LIMIT = 51
# A page that finds at once what it looks for reads a few rows; one that finds nothing its window.
FEW = 300
# Each row that is looked at costs at most its place in the index and its block.
PER_ROW = 2.2

# As a busy shop leaves it: most is over, some ended badly, some waits, some is being worked on.
FILL = """insert into forge_jobs (id, job_type, tenant_id, input)
select (lpad(to_hex(1700000000000 + n), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid,
       'type' || n % 20, case when n % 3 = 0 then 1 when n % 1000 = 1 then 7 end,
       jsonb_build_object('n', n, 'text', md5(n::text))
from generate_series(1, $1::int) as n"""
MOVES = [
    "update forge_jobs set status = 'running', worker_id = $1, lease = 1, attempts = 1"
    " where job_type <> 'type7'",
    "update forge_jobs set status = 'completed' where job_type not in ('type7', 'type8', 'type9')"
    " and worker_id = $1",
    "update forge_jobs set status = 'dead_letter' where job_type = 'type9' and worker_id = $1",
]

ALL = (NEWEST, OLDEST)
MIDDLE = (UUID(int=(1700000000000 + ROWS // 2) << 80), OLDEST)
BAD = ["failed", "dead_letter"]
OTHER_WAYS = ("_of_tenant", "_ended", "_live")

AT_ONCE: dict[str, Statement[Any]] = {
    "the newest": listing.page(JobFilter(*ALL), LIMIT),
    "the next page": listing.page(JobFilter(*MIDDLE), LIMIT),
    "of a frequent type": listing.page(JobFilter(*ALL, job_type="type1"), 3),
    "of a large tenant": listing.page_of_tenant(1, JobFilter(*ALL), LIMIT),
    "of a small tenant": listing.page_of_tenant(7, JobFilter(*ALL), LIMIT),
    "the next page of a small tenant": listing.page_of_tenant(7, JobFilter(*MIDDLE), LIMIT),
    "of a tenant without jobs": listing.page_of_tenant(99, JobFilter(*ALL), LIMIT),
    "of a tenant in a status": listing.page_of_tenant(1, JobFilter(*ALL, ["completed"]), LIMIT),
    "that ended badly": listing.page_ended(JobFilter(*ALL, BAD), LIMIT),
    "that ended badly, the next page": listing.page_ended(JobFilter(*MIDDLE, BAD), LIMIT),
    "counts of a small tenant": listing.count_newest(EXACT_LIMIT + 1, 7),
    "counts of what ended badly": listing.count_ended(100),
}
IN_A_WINDOW: dict[str, tuple[Statement[Any], int]] = {
    "of a type that is not there": (listing.page(JobFilter(*ALL, job_type="x"), LIMIT), WINDOW),
    "of a queue that is not there": (listing.page(JobFilter(*ALL, queue="x"), LIMIT), WINDOW),
    "of a priority that is not there": (listing.page(JobFilter(*ALL, priority=0), LIMIT), WINDOW),
    "of a status that is rare": (listing.page(JobFilter(*ALL, ["cancelled"]), LIMIT), WINDOW),
    "of a tenant and a type that is not there": (
        listing.page_of_tenant(1, JobFilter(*ALL, job_type="x"), LIMIT),
        WINDOW,
    ),
    "that ended badly, of a type that is not there": (
        listing.page_ended(JobFilter(*ALL, BAD, job_type="x"), LIMIT),
        WINDOW,
    ),
    "that wait": (listing.page_live(None, JobFilter(*ALL, ["pending"]), LIMIT), WINDOW),
    "that run": (listing.page_live(7, JobFilter(*ALL, ["running"]), LIMIT), WINDOW),
    "counts of the newest": (listing.count_newest(EXACT_LIMIT + 1, None), EXACT_LIMIT),
    "counts of what is live": (listing.count_live(EXACT_LIMIT + 1), 2 * EXACT_LIMIT),
    "counts of all": (listing.count_sample(SAMPLE_BLOCKS), 2 * SAMPLE_BLOCKS),
}


@pytest.fixture
async def explain(
    psql: "Psql[Any]", database: Database
) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A connection that records its plans, on a table with many rows."""
    await psql.execute(FILL, ROWS)
    for move in MOVES:
        await psql.execute(move, *([UUID(int=1)] if "$1" in move else []))
    await psql.execute("vacuum forge_jobs")
    connection = await explaining(database)
    yield connection
    await connection.close()


@pytest.mark.parametrize("role", ["owner", "forge_api"])
async def test_a_list_reads_a_bounded_part_of_a_large_table(
    psql: "Psql[Any]", database: Database, explain: "asyncpg.Connection[Any]", role: str
) -> None:
    if role == "forge_api":  # row security applies to it
        await grant_roles(database)
        await explain.execute("set role forge_api")
    size = await psql.fetchval("select pg_relation_size('forge_jobs') / 8192")
    assert size > 5_000  # or nothing is proven

    for statistics in ("none", "fresh"):
        if statistics == "fresh":
            await psql.execute("analyze forge_jobs")
        for name, statement in AT_ONCE.items():
            await _act_for(explain, name)
            plan = await planned(explain, statement)
            assert "Seq Scan" not in plan.ways_to("forge_jobs"), (name, statistics)
            assert plan.buffers <= FEW, (name, statistics)
        for name, (statement, rows) in IN_A_WINDOW.items():
            await _act_for(explain, name)
            plan = await planned(explain, statement)
            assert "Seq Scan" not in plan.ways_to("forge_jobs"), (name, statistics)
            assert plan.buffers <= rows * PER_ROW, (name, statistics)


async def _act_for(connection: "asyncpg.Connection[Any]", name: str) -> None:
    """Set the caller of the next statement, as the server does."""
    tenant = "7" if "small tenant" in name else "1" if "tenant" in name else "*"
    await connection.execute("select set_config('forge.tenant_id', $1, false)", tenant)


async def test_every_way_to_list_and_count_is_looked_at() -> None:
    looked_at = {each.sql for each in AT_ONCE.values()} | {s.sql for s, _ in IN_A_WINDOW.values()}

    for make in (listing.page, listing.page_ended):
        assert make(JobFilter(*ALL), LIMIT).sql in looked_at
    assert len(looked_at) == 9  # page*, 4; count_*, 5


def test_every_way_to_list_keeps_and_measures_the_same_jobs() -> None:
    ways = [" ".join(load(f"jobs/page{way}").split()) for way in ("", *OTHER_WAYS)]
    texts = [way[way.index("($3::text[] is null") :] for way in ways]

    kept = {text[: text.index("correlation_id = $10")] for text in texts}
    measured = {text[text.index("), measured as") :] for text in texts}

    assert len(kept) == len(measured) == 1
