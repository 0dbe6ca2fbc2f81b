"""Insert many dead letters with SQL."""

from typing import Any

FILL = """insert into forge_dead_letters
    (job_id, job_type, category, queue, priority, tenant_id, payload, payload_version, error_class,
     exception, error_message, place, fingerprint, attempt_count, original_created_at,
     original_scheduled_at)
select forge_uuidv7(), $2::text, $3::text, 'default', 50, $4, jsonb_build_object('n', n), '1.0',
       $5::text,
       'ValueError', 'no luck with ' || n, $6::text,
       md5($2::text || coalesce($3::text, '') || coalesce($5::text, '') || $6::text), 1, now(),
       now()
from generate_series(1, $1::int) as n
returning dlq_id"""


async def fill(
    psql: Any,
    count: int,
    job_type: str = "flaky",
    *,
    category: str | None = None,
    tenant_id: int | None = None,
    error_class: str | None = None,
    place: str = "jobs:run",
) -> list[int]:
    """Insert dead letters with the same cause."""
    found = await psql.fetch(FILL, count, job_type, category, tenant_id, error_class, place)
    return [row["dlq_id"] for row in found]
