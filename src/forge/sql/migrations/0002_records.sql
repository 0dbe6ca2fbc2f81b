-- What is kept about jobs beside the job itself, and the rows of schedules and transports.

create table forge_attempts (
    job_id uuid not null,
    lease bigint not null,
    attempt integer not null,
    tenant_id bigint,
    worker_id uuid,
    -- what came of it: retry, failed, dead_letter, lost (the worker died, or the database), crashed (died alone),
    -- released (the worker stopped)
    outcome varchar(32) not null,
    error_class varchar(32),
    exception text,
    error text,
    trace text,
    started_at timestamptz,
    ended_at timestamptz not null default now(),
    primary key (job_id, lease)
);

-- Numbers that tenants see: they grow with time and do not count, or the distance between two of a
-- tenant's own would be how much happened to all others. Microseconds since 2020, then the two last
-- bits of a sequence for rows of the same microsecond; below 2^53 until the year 2091.
create sequence forge_numbers;
create function forge_new_number() returns bigint
    language sql volatile
    return (((extract(epoch from clock_timestamp()) - 1577836800) * 1000000)::bigint << 2)
           | (nextval('forge_numbers') & 3);

create table forge_dead_letters (
    dlq_id bigint not null default forge_new_number(),
    job_id uuid not null unique,
    job_type varchar(255) not null,
    category varchar(32),
    queue varchar(255) not null,
    priority integer not null,
    tenant_id bigint,
    correlation_id uuid,
    idempotency_key varchar(255),
    payload jsonb not null,
    payload_version varchar(32) not null,
    error_class varchar(32),
    exception text,
    error_message text,
    fingerprint text,
    attempt_count integer not null,
    crashes integer not null default 0,
    attempts jsonb not null default '[]',
    original_created_at timestamptz not null,
    original_scheduled_at timestamptz not null,
    created_at timestamptz not null default now(),
    status varchar(32) not null default 'pending_review',
    reviewed_at timestamptz,
    reviewed_by text,
    notes text,
    new_job_id uuid,
    edited_payload jsonb,
    -- the forge.reprocess job that made the new one (null: a person), also when that is deleted
    request_id uuid,
    constraint forge_dead_letters_status check (status in ('pending_review', 'reprocessed', 'discarded'))
);

create table forge_audit_events (
    id bigint primary key default forge_new_number(),
    event varchar(64) not null,
    actor text,
    tenant_id bigint,
    job_id uuid,
    dlq_id bigint,
    schedule_id uuid,
    notes text,
    detail jsonb,
    created_at timestamptz not null default now()
);

create table forge_schedule_types (
    name varchar(255) primary key,
    priority integer not null default 50,
    worker_capability varchar(255),
    input_schema jsonb,
    updated_at timestamptz not null default now()
);

create table forge_schedules (
    id uuid primary key default forge_uuidv7(),
    type varchar(255) not null,
    key varchar(255) not null default '',
    payload jsonb not null default '{}',
    enabled boolean not null default true,
    next_run_at timestamptz,
    running_since timestamptz,
    last_run_at timestamptz,
    last_error text,
    consecutive_failures integer not null default 0,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    lease bigint not null default 0,
    worker_id uuid,
    last_heartbeat timestamptz,
    every interval,
    cron text,
    tz text not null default 'UTC',
    missed varchar(8) not null default 'once',
    jitter interval,
    priority integer not null default 50,
    worker_capability varchar(255),
    timeout interval,
    tenant_id bigint,
    recent_runs jsonb not null default '[]',
    constraint forge_schedules_once unique nulls not distinct (tenant_id, type, key),
    constraint forge_schedules_missed check (missed in ('once', 'skip', 'all')),
    constraint forge_schedules_priority check (priority in (0, 25, 50, 75, 100))
) with (fillfactor = 70);

create table forge_outbox (
    id bigint generated always as identity primary key,
    job_id uuid not null,
    send_at timestamptz not null default now(),
    created_at timestamptz not null default now()
);
