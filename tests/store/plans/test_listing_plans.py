"""Plans of lists, counts and bulk actions: each reads a bounded part of a large table, by index."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from forge.core.job_filter import NEWEST, OLDEST, JobFilter
from forge.core.lifecycle import Status
from forge.jobs.counts import EXACT_LIMIT, SAMPLE_BLOCKS
from forge.store import bulk, jobs, listing, queue_statistics
from forge.store.connection.database import Database
from forge.store.jobs import RerunChanges
from forge.store.listing import FILTERED, WINDOW, PageRange
from forge.store.roles import grant_roles
from forge.store.statement import Statement, load, name_of
from tests.store.placing import Psql
from tests.store.plans.crowd import explaining, planned

ROWS = 100_000
LIMIT = 51
# A page that finds at once what it looks for reads a few rows; one that finds nothing its window.
FEW = 300
# Before PostgreSQL 17 each id of a list walks the three levels of the index.
PER_ID = 4
BY_IDS = ("to act on, by their ids",)
# Each row that is looked at costs at most its place in the index and its block.
PER_ROW = 2.2

# As a busy shop leaves it: most is over, some ended badly, some waits, some is being worked on. A
# few jobs have many children, and half the table shares a correlation id.
FILL = """insert into forge_jobs
    (id, job_type, tenant_id, input, parent_id, retry_of, correlation_id, idempotency_key)
select (lpad(to_hex(1700000000000 + n), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid,
       'type' || n % 20, case when n % 3 = 0 then 1 when n % 1000 = 1 then 7 end,
       jsonb_build_object('n', n, 'text', md5(n::text)),
       case when n % 10 = 0 then lpad(to_hex(n % 7), 32, '0')::uuid end,
       case when n % 1000 = 2 then $2::uuid end,
       case when n % 2 = 0 then $2::uuid when n % 1000 = 3 then $3::uuid end,
       case when n % 5 = 0 then 'key ' || n end
from generate_series(1, $1::int) as n"""
MOVES = [
    "update forge_jobs set status = 'running', worker_id = $1, lease = 1, attempts = 1"
    " where job_type <> 'type7'",
    "update forge_jobs set status = 'completed' where job_type not in ('type7', 'type8', 'type9')"
    " and worker_id = $1",
    "update forge_jobs set status = 'dead_letter' where job_type = 'type9' and worker_id = $1",
]

MIDDLE = UUID(int=(1700000000000 + ROWS // 2) << 80)
BAD = (Status.FAILED, Status.DEAD_LETTER)
# Ids as FILL makes them, of each status.
SOME = [UUID(int=(1700000000000 + n << 80) + (0x70008 << 60) + n) for n in range(1000, 1100)]
ONE, TWO, THREE, NONE = (UUID(int=n) for n in (1, 2, 3, 99))


def pages(limit: int = LIMIT, before: UUID | None = None, **wanted: Any) -> Statement[Any]:
    job_filter = JobFilter(**wanted)
    return listing.page(job_filter, PageRange(before or job_filter.end_id, OLDEST, limit))


def counts(look_at: int, **wanted: Any) -> Statement[Any]:
    return listing.count_matching(JobFilter(**wanted), look_at)


def chosen(after: UUID = OLDEST, **wanted: Any) -> Statement[Any]:
    return bulk.choose(JobFilter(**wanted), after)


def live(**wanted: Any) -> Statement[Any]:
    return listing.page_live(JobFilter(**wanted), PageRange(NEWEST, OLDEST, LIMIT))


AT_ONCE: dict[str, Statement[Any]] = {
    "the newest": pages(),
    "the next page": pages(before=MIDDLE),
    "of a frequent type": pages(3, job_type="type1"),
    "of a large tenant": pages(tenant_id=1),
    "of a small tenant": pages(tenant_id=7),
    "the next page of a small tenant": pages(tenant_id=7, before=MIDDLE),
    "of a tenant without jobs": pages(tenant_id=99),
    "of a tenant in a status": pages(tenant_id=1, statuses=(Status.COMPLETED,)),
    "that ended badly": pages(statuses=BAD),
    "that ended badly, the next page": pages(statuses=BAD, before=MIDDLE),
    "children": pages(parent_id=ONE),
    "children, the next page": pages(parent_id=ONE, before=MIDDLE),
    "children of a job without any": pages(parent_id=NONE),
    "children of a type": pages(3, parent_id=THREE, job_type="type10"),
    "that do a job again": pages(retry_of=ONE),
    "that do no job again": pages(retry_of=NONE),
    "of a frequent correlation": pages(correlation_id=ONE),
    "of a rare correlation": pages(correlation_id=TWO),
    "of an unknown correlation": pages(correlation_id=NONE),
    "of a key": pages(idempotency_key="key 50"),
    "of an unknown key": pages(idempotency_key="no key"),
    "the oldest that is due": jobs.oldest_ready(),
    "the lanes": jobs.survey_all(),
    "the depth of lanes": queue_statistics.depth(100),
    "a hash of the newest": listing.fingerprint(JobFilter(), LIMIT),
    "a hash of a small tenant": listing.fingerprint(JobFilter(tenant_id=7), LIMIT),
    "a hash of children": listing.fingerprint(JobFilter(parent_id=ONE), LIMIT),
    "counts of a small tenant": listing.count_newest(EXACT_LIMIT + 1, 7),
    "counts of what ended badly": listing.count_ended(100),
    "counts that match of a small tenant": counts(100, tenant_id=7),
    "counts of an unknown correlation": counts(10_000, correlation_id=NONE),
    "counts of those that do a job again": counts(100, retry_of=ONE),
    "counts of a key": counts(10_000, idempotency_key="key 50"),
    "counts of children": counts(100, parent_id=ONE),
    "to act on, children of a job without any": chosen(parent_id=NONE),
    "to act on, that do no job again": chosen(retry_of=NONE),
    "to act on, of a rare correlation": chosen(correlation_id=TWO),
    "to act on, of a key": chosen(idempotency_key="key 50"),
    "to act on, of a small tenant": chosen(tenant_id=7),
    "to act on, by their ids": bulk.matching(JobFilter(job_type="type7"), SOME),
}
# What only workers may do, for a hundred jobs: each row costs its place in every index.
PER_CHANGED_ROW = 60
AS_WORKER: dict[str, Statement[Any]] = {
    "lock": bulk.lock(JobFilter(statuses=(Status.PENDING,)), SOME),
    "cancel": jobs.cancel(SOME, None, "why", request=ONE),
    "give up": jobs.give_up(SOME, None, "why", request=ONE),
    "erase": jobs.erase(SOME, None, "why", request=ONE),
    "run now": jobs.reschedule(SOME, None, "why", request=ONE),
    "reprioritise": jobs.reprioritise(SOME, None, "why", priority=100, request=ONE),
    "move": jobs.move(SOME, None, "why", queue="slow", request=ONE),
    "rerun": jobs.rerun(SOME, None, "why", None, RerunChanges(), request=ONE),
}
IN_A_WINDOW: dict[str, tuple[Statement[Any], int]] = {
    "of a type that is not there": (pages(job_type="x"), WINDOW),
    "of a queue that is not there": (pages(queue="x"), WINDOW),
    "of a priority that is not there": (pages(priority=0), WINDOW),
    "of a status that is rare": (pages(statuses=(Status.CANCELLED,)), WINDOW),
    "of a tag that is not there": (pages(tag="x"), WINDOW),
    "of a worker that is not there": (pages(worker_id=NONE), WINDOW),
    "of a tenant and a type that is not there": (pages(tenant_id=1, job_type="x"), WINDOW),
    "of a frequent correlation and no type": (pages(correlation_id=ONE, job_type="x"), WINDOW),
    "that ended badly, of a type that is not there": (pages(statuses=BAD, job_type="x"), WINDOW),
    "a hash of a type that is not there": (
        listing.fingerprint(JobFilter(job_type="x"), LIMIT),
        WINDOW,
    ),
    "that wait": (live(statuses=(Status.PENDING,)), WINDOW),
    "that run": (live(statuses=(Status.RUNNING,), tenant_id=7), WINDOW),
    "to act on, in the whole table": (chosen(job_type="x"), bulk.WINDOW),
    "to act on, from the middle": (chosen(MIDDLE, job_type="x"), bulk.WINDOW),
    "to act on, of a tenant": (chosen(tenant_id=1, job_type="x"), bulk.WINDOW),
    "to act on, of a frequent correlation": (chosen(correlation_id=ONE), bulk.WINDOW),
    "to act on, children": (chosen(parent_id=ONE), bulk.WINDOW),
    "to act on, that ended badly": (chosen(statuses=BAD), 2 * bulk.WINDOW),
    "to act on, that wait": (
        bulk.choose_live(JobFilter(statuses=(Status.PENDING, Status.RUNNING)), OLDEST),
        2 * bulk.MAX_LIVE,
    ),
    "counts of the newest": (listing.count_newest(EXACT_LIMIT + 1, None), EXACT_LIMIT),
    "counts of what is live": (listing.count_live(EXACT_LIMIT + 1), 2 * EXACT_LIMIT),
    "counts of all": (listing.count_sample(SAMPLE_BLOCKS), 2 * SAMPLE_BLOCKS),
    "counts of a type": (counts(EXACT_LIMIT + 1, job_type="type1"), EXACT_LIMIT + 1),
    "counts of a frequent correlation": (
        counts(EXACT_LIMIT + 1, correlation_id=ONE),
        EXACT_LIMIT + 1,
    ),
}


@pytest.fixture
async def explain(
    psql: "Psql[Any]", database: Database
) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A connection that records its plans, on a table with many rows."""
    await psql.execute(FILL, ROWS, ONE, TWO)
    for move in MOVES:
        await psql.execute(move, *([UUID(int=1)] if "$1" in move else []))
    await psql.execute("vacuum forge_jobs")
    connection = await explaining(database)
    yield connection
    await connection.close()


async def test_a_list_reads_a_bounded_part_of_a_large_table(
    psql: "Psql[Any]", database: Database, explain: "asyncpg.Connection[Any]"
) -> None:
    size = await psql.fetchval("select pg_relation_size('forge_jobs') / 8192")
    assert size > 5_000  # or nothing is proven

    is_before_17 = explain.get_server_version().major < 17
    for role in ("owner", "forge_api"):
        if role == "forge_api":  # row security applies to it
            await grant_roles(database)
            await explain.execute("set role forge_api")
        for statistics in ("none", "fresh"):
            if statistics == "fresh":
                await psql.execute("analyze forge_jobs")
            else:
                await psql.execute(
                    "delete from pg_statistic where starelid = 'forge_jobs'::regclass"
                )
            for name, statement in AT_ONCE.items():
                await _act_for(explain, name)
                plan = await planned(explain, statement)
                assert "Seq Scan" not in plan.ways_to("forge_jobs"), (name, role, statistics)
                bound = PER_ID * len(SOME) if name in BY_IDS and is_before_17 else FEW
                assert plan.buffers <= bound, (name, role, statistics)
            for name, (statement, rows) in IN_A_WINDOW.items():
                await _act_for(explain, name)
                plan = await planned(explain, statement)
                assert "Seq Scan" not in plan.ways_to("forge_jobs"), (name, role, statistics)
                assert plan.buffers <= rows * PER_ROW, (name, role, statistics)
            for name, statement in AS_WORKER.items() if role == "owner" else ():
                plan = await planned(explain, statement)
                assert "Seq Scan" not in plan.ways_to("forge_jobs"), (name, statistics)
                assert plan.buffers <= len(SOME) * PER_CHANGED_ROW, (name, statistics)


async def _act_for(connection: "asyncpg.Connection[Any]", name: str) -> None:
    """Set the caller of the next statement, as the server does."""
    tenant = "7" if "small tenant" in name else "1" if "tenant" in name else "*"
    await connection.execute("select set_config('forge.tenant_id', $1, false)", tenant)


def test_every_way_to_list_and_count_is_looked_at() -> None:
    looked_at = {name_of(each) for each in AT_ONCE.values()}
    looked_at |= {name_of(each) for each, _ in IN_A_WINDOW.values()}

    assert looked_at | {name_of(each) for each in AS_WORKER.values()} >= set(FILTERED)
    counts = ("newest", "newest_of_tenant", "live", "ended", "sample")
    assert looked_at - set(FILTERED) == {
        "jobs/depth",
        "jobs/fingerprint",
        "jobs/oldest_ready",
        "jobs/survey_all",
        *(f"jobs/count_{name}" for name in counts),
    }


def test_every_way_to_list_filters_and_measures_alike() -> None:
    texts = {name: " ".join(load(name).split()) for name in FILTERED}
    lists = {name: text for name, text in texts.items() if "/page" in name}

    kept = {
        text[text.index("/* generated filter") :].partition("/* end")[0] for text in texts.values()
    }
    measured = {text[text.index("), shown as") :] for text in lists.values()}

    assert len(kept) == len(measured) == 1
