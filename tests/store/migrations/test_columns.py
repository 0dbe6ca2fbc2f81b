"""The names, types and defaults of columns, on which other tools and languages depend."""

from typing import Any

# As the first description of jobs has them, word for word.
KNOWN = """
CREATE TABLE known.forge_jobs (
    id UUID PRIMARY KEY,
    job_type VARCHAR(255) NOT NULL,
    input JSONB NOT NULL DEFAULT '{}',
    output JSONB,
    status VARCHAR(32) NOT NULL DEFAULT 'pending',
    priority INTEGER NOT NULL DEFAULT 50,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL DEFAULT 3,
    last_error TEXT,
    progress_percent INTEGER DEFAULT 0,
    progress_message TEXT,
    worker_capability VARCHAR(255),
    worker_id UUID,
    idempotency_key VARCHAR(255),
    scheduled_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    claimed_at TIMESTAMPTZ,
    started_at TIMESTAMPTZ,
    completed_at TIMESTAMPTZ,
    failed_at TIMESTAMPTZ,
    last_heartbeat TIMESTAMPTZ
)
"""
OURS = {
    "lease": "bigint",
    "version": "bigint",
    "crashes": "integer",
    "cancelled_at": "timestamp with time zone",
    "suspect": "boolean",
    "queue": "character varying(255)",
    "tenant_id": "bigint",
    "category": "character varying(32)",
    "correlation_id": "uuid",
    "payload_version": "character varying(32)",
    "error_class": "character varying(32)",
    "auth": "jsonb",
    "traceparent": "character varying(255)",
    "timeout": "interval",
    "expires_at": "timestamp with time zone",
    "retry_of": "uuid",
    "parent_id": "uuid",
    "tags": "text[]",
    "meta": "jsonb",
    "checkpoint": "jsonb",
}
TABLES = {
    "forge_jobs",
    "forge_job_types",
    "forge_schedule_types",
    "forge_idempotency_keys",
    "forge_attempts",
    "forge_dead_letters",
    "forge_audit_events",
    "forge_schedules",
    "forge_workers",
    "forge_outbox",
}
COLUMNS = """
    select attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid)
    from pg_attribute
    left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where attrelid = $1::regclass and attnum > 0 and not attisdropped
"""


async def test_jobs_keep_the_columns_by_which_they_are_known(psql: Any) -> None:
    await psql.execute("create schema known")
    await psql.execute(KNOWN)

    known = await columns(psql, "known.forge_jobs")
    ours = await columns(psql, "public.forge_jobs")

    assert {name: ours[name] for name in known if name != "id"} == {
        name: known[name] for name in known if name != "id"
    }
    assert ours["id"] == (*known["id"][:2], "forge_uuidv7()")


async def test_jobs_have_the_columns_that_forge_adds(psql: Any) -> None:
    ours = await columns(psql, "public.forge_jobs")

    assert {name: ours[name][0] for name in OURS} == OURS


async def test_the_tables_have_their_names(psql: Any) -> None:
    found = await psql.fetch("select tablename from pg_tables where schemaname = 'public'")

    assert {row["tablename"] for row in found} >= TABLES


async def test_ids_are_of_version_7_and_begin_with_their_time(psql: Any) -> None:
    before, made, after = await psql.fetchrow(
        """with began as materialized (select clock_timestamp() as at),
                made as materialized (select forge_uuidv7() as id from began)
           select (extract(epoch from began.at) * 1000)::bigint, made.id,
                  (extract(epoch from clock_timestamp()) * 1000)::bigint + 1
           from began, made"""
    )

    assert made.version == 7
    assert before - 1 <= made.int >> 80 <= after


async def columns(psql: Any, table: str) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(rest) for name, *rest in await psql.fetch(COLUMNS, table)}
