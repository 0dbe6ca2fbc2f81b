"""Plans of the admin API's statements as forge_api: indexes for every page and tenant."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from forge.core.dead_letter import LetterFilter
from forge.core.job_filter import JobFilter
from forge.core.lifecycle import Status
from forge.store import audit, dead_letters, listing, queue_statistics
from forge.store.audit import AuditFilter
from forge.store.connection.database import Database
from forge.store.roles import grant_roles
from forge.store.statement import Statement
from tests.store.placing import Psql
from tests.store.plans.crowd import explaining, planned

LETTERS = 30_000
LIMIT = 51
# A page reads its rows and some of the index; the counts of causes are few.
FEW = 300
MIDDLE = LETTERS // 2
FILL = """insert into forge_dead_letters
    (job_id, job_type, category, queue, priority, tenant_id, payload, payload_version, error_class,
     exception, error_message, place, fingerprint, attempt_count, original_created_at,
     original_scheduled_at)
select forge_uuidv7(), 'type' || n % 5, case when n % 2 = 0 then 'sync' end, 'default', 50, n % 3,
       jsonb_build_object('n', n), '1.0', null, 'ValueError', 'no luck with ' || n, 'jobs:run',
       md5('type' || n % 5), 1, now(), now()
from generate_series(1, $1::int) as n"""
AUDIT = """insert into forge_audit_events (event, actor, tenant_id, dlq_id, job_id, schedule_id)
select 'event', 'ann', tenant_id, dlq_id, job_id,
       case when dlq_id % 1000 = 0 then '00000000-0000-0000-0000-000000000007'::uuid end
from forge_dead_letters"""

Case = tuple[int | None, Statement[Any]]


def letters(tenant: int | None, before: int | None = None, **wanted: Any) -> Case:
    return tenant, dead_letters.listed(LetterFilter(tenant_id=tenant, **wanted), before, LIMIT)


def events(tenant: int | None = None, before: int | None = None, **wanted: Any) -> Case:
    return tenant, audit.listed(AuditFilter(tenant_id=tenant, **wanted), before, LIMIT - 1)


CASES: dict[str, Case] = {
    "all": letters(None),
    "all, a page in the middle": letters(None, MIDDLE),
    "all, the last page": letters(None, 60),
    "under review, a page in the middle": letters(None, MIDDLE, status="pending_review"),
    "of a type, a page in the middle": letters(None, MIDDLE, job_type="type3"),
    "of a tenant": letters(2),
    "of a tenant, the last page": letters(2, 400),
    "of a tenant and a type, in the middle": letters(2, MIDDLE, job_type="type3"),
    "of a tenant that has none": letters(99),
    "of a tenant that has none of a type": letters(99, job_type="type3"),
    "one": (2, dead_letters.get(MIDDLE, 2)),
    "statistics": (None, dead_letters.statistics(None)),
    "statistics of a tenant": (2, dead_letters.statistics(2)),
    "groups": (None, dead_letters.groups(LetterFilter(), LIMIT)),
    "groups of a tenant": (2, dead_letters.groups(LetterFilter(tenant_id=2), LIMIT)),
    "a count of a tenant that has none": (99, dead_letters.count(LetterFilter(tenant_id=99))),
    "a count": (None, dead_letters.count(LetterFilter(job_type="type3"))),
    "audit": events(),
    "audit, a page in the middle": events(before=MIDDLE),
    "audit of a tenant, the last page": events(2, before=400),
    "audit of a tenant that has none": events(99),
    "audit of a letter": events(2, dlq_id=MIDDLE),
    "audit of a job": events(2, job_id=uuid4()),
    "audit of a schedule": events(schedule_id=UUID(int=7)),
    "audit of long ago": events(until=datetime(2021, 1, 1, tzinfo=UTC)),
    "audit of the future": events(since=datetime(2090, 1, 1, tzinfo=UTC)),
}


@pytest.fixture
async def explain(
    psql: "Psql[Any]", database: Database
) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A connection of forge_api that records its plans, on tables with many rows."""
    await psql.execute(FILL, LETTERS)
    await psql.execute(AUDIT)
    await psql.execute("vacuum forge_dead_letters, forge_audit_events")
    await grant_roles(database)
    connection = await explaining(database)
    await connection.execute("set role forge_api")
    yield connection
    await connection.close()


async def test_admin_api_statements_read_a_bounded_part_of_large_tables(
    psql: "Psql[Any]", explain: "asyncpg.Connection[Any]"
) -> None:
    assert await psql.fetchval("select pg_relation_size('forge_dead_letters') / 8192") > 900

    found: dict[tuple[str, str], int] = {}
    for known in ("none", "fresh"):
        if known == "fresh":
            await psql.execute("analyze forge_dead_letters, forge_audit_events")
        for name, (tenant, statement) in CASES.items():
            setting = "*" if tenant is None else str(tenant)
            await explain.execute("select set_config('forge.tenant_id', $1, false)", setting)
            plan = await planned(explain, statement)
            found[name, known] = plan.buffers

    assert {case: buffers for case, buffers in found.items() if buffers > FEW} == {}


async def test_counts_of_matching_jobs_read_a_bounded_number_of_rows(
    psql: "Psql[Any]", database: Database
) -> None:
    await psql.execute(
        "insert into forge_jobs (job_type, tenant_id) "
        "select 'type' || n % 20, n % 3 from generate_series(1, 30000) as n"
    )
    await psql.execute("vacuum analyze forge_jobs")
    await grant_roles(database)
    connection = await explaining(database)
    await connection.execute("set role forge_api")
    wanted = JobFilter(statuses=(Status.COMPLETED,), job_type="type3")

    read = {}
    for tenant in (None, 1, 99):
        setting = "*" if tenant is None else str(tenant)
        await connection.execute("select set_config('forge.tenant_id', $1, false)", setting)
        plan = await planned(
            connection, listing.count_matching(replace(wanted, tenant_id=tenant), 1000)
        )
        assert plan.ways_to("forge_jobs") == {"Index Scan"}
        read[tenant] = plan.buffers
    of_unknown_tenant = await planned(connection, queue_statistics.counted(99))

    await connection.close()
    assert max(read.values()) <= 1000 * 2.2, read
    assert read[99] + of_unknown_tenant.buffers < 100
