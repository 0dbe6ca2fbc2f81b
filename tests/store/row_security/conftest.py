"""Rows of two tenants and without a tenant, and the roles that read them."""

from typing import Any
from uuid import UUID

import pytest

from forge.store.connection.database import Database
from forge.store.roles import grant_roles
from tests.dead_letters.letters import fill

# One row per tenant and table, and one without a tenant.
FILL = """
with job as (
    insert into forge_jobs (job_type, tenant_id, idempotency_key) values ('plain', $1, 'k')
    returning id
), keys as (
    insert into forge_idempotency_keys (tenant_id, key, job_id) select $1, 'k', id from job
), attempts as (
    insert into forge_attempts (job_id, lease, attempt, tenant_id, outcome)
    select id, 1, 1, $1, 'retry' from job
), logs as (
    insert into forge_attempt_logs (job_id, lease, kind, slot, number, tenant_id, at)
    select id, 1, 'log', 0, 1, $1, now() from job
), audit as (
    insert into forge_audit_events (event, tenant_id, job_id) select 'seen', $1, id from job
), schedules as (
    insert into forge_schedules (type, tenant_id) values ('tick', $1)
), outbox as (
    insert into forge_outbox (job_id) select id from job
)
select id from job"""

TABLES = [
    "forge_jobs",
    "forge_idempotency_keys",
    "forge_attempts",
    "forge_attempt_logs",
    "forge_dead_letters",
    "forge_dead_letter_counts",
    "forge_audit_events",
    "forge_schedules",
    "forge_outbox",
]


def as_role(role: str, url: str) -> str:
    return url.replace("//forge@", f"//{role}@")


@pytest.fixture
async def filled(database: Database, psql: Any) -> dict[int | None, UUID]:
    """Rows of tenant 1, of tenant 2 and without a tenant, and the roles; returns a job of each."""
    await grant_roles(database)
    made = {}
    for tenant in (1, 2, None):
        made[tenant] = await psql.fetchval(FILL, tenant)
        await fill(psql, 1, tenant_id=tenant)
    return made
