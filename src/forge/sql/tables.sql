-- Generated from sql/migrations by `make format`: the tables alone. schema.sql has the rest.

-- One row per job.
create table forge_jobs (
    id uuid primary key default forge_uuidv7(),
    lease bigint not null default 0,  -- grows by one at every claim; an ack with an older lease is rejected
    version bigint not null default 0,  -- grows by one at every change of the row
    status varchar(32) not null default 'pending',
    worker_id uuid,
    attempts integer not null default 0,
    max_attempts integer not null default 3,
    priority integer not null default 50,
    crashes integer not null default 0,  -- attempts ended by a stopped or dead worker, or by the loss of the database
    scheduled_at timestamptz not null default now(),
    created_at timestamptz not null default now(),
    lone_crashes integer not null default 0,  -- how often its process died while it ran alone
    progress_percent integer default 0,
    suspect boolean not null default false,  -- a worker died while it ran this job, so it runs alone from now on
    job_type varchar(255) not null,
    queue varchar(255) not null default 'default',
    worker_capability varchar(255),
    input jsonb not null default '{}',
    output jsonb,
    progress_message text,
    last_error text,
    error_class varchar(32),
    idempotency_key varchar(255),
    claimed_at timestamptz,
    started_at timestamptz,
    completed_at timestamptz,
    failed_at timestamptz,
    cancelled_at timestamptz,
    last_heartbeat timestamptz,
    expires_at timestamptz,
    timeout interval,
    tenant_id bigint,
    category varchar(32),
    correlation_id uuid,
    payload_version varchar(32) not null default '1.0',
    auth jsonb,
    traceparent varchar(255),
    retry_of uuid,
    parent_id uuid,
    tags text[],
    meta jsonb,
    checkpoint jsonb,  -- what the next attempt resumes from
    original_scheduled_at timestamptz  -- the time it was dispatched for, once scheduled_at has moved
);

-- One row per attempt that did not succeed.
create table forge_attempts (
    job_id uuid not null,
    lease bigint not null,
    attempt integer not null,
    tenant_id bigint,
    worker_id uuid,
    outcome varchar(32) not null,  -- retry, failed, dead_letter, lost, crashed or released
    error_class varchar(32),
    exception text,
    error text,
    trace text,
    started_at timestamptz,
    ended_at timestamptz not null default now(),
    claimed_at timestamptz,
    retry_at timestamptz,  -- when the next attempt is due, where this one is retried
    primary key (job_id, lease)
);

-- What attempts reported while they ran: log lines, progress messages and snoozes.
create table forge_attempt_logs (
    job_id uuid not null,
    lease bigint not null,
    kind varchar(16) not null,
    slot integer not null,  -- the place among the lines of its kind: a newer line replaces the oldest
    -- how many lines of its kind the attempt had written with this one; of a snooze the attempt
    number bigint not null,
    tenant_id bigint,
    at timestamptz not null,
    level varchar(8),
    message text,
    fields jsonb,
    percent integer,
    primary key (job_id, lease, kind, slot),
    constraint forge_attempt_logs_kind check (kind in ('log', 'progress', 'snoozed'))
);

-- One row per tenant and idempotency key, with the job that holds it.
create table forge_idempotency_keys (
    tenant_id bigint,
    key varchar(255) not null,
    job_id uuid not null,
    created_at timestamptz not null default now(),
    constraint forge_idempotency_keys_unique unique nulls not distinct (tenant_id, key)
);

-- One row per job that failed for good.
create table forge_dead_letters (
    dlq_id bigint primary key default forge_new_number(),
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
    fingerprint text,  -- a hash of the cause; letters with the same fingerprint are one group
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
    request_id uuid,  -- the forge.reprocess job that created new_job_id; null for a person
    place text,  -- module:function of the innermost frame in the user's own code
    constraint forge_dead_letters_status check (status in ('pending_review', 'reprocessed', 'discarded'))
);

-- Changes in the number of dead letters per cause, one row per change.
create table forge_dead_letter_counts (
    tenant_id bigint,
    status varchar(32) not null,
    job_type varchar(255) not null,
    category varchar(32),
    error_class varchar(32),
    exception text,
    place text,
    fingerprint text not null,
    letters bigint not null,
    first_seen timestamptz,
    last_seen timestamptz,
    sample bigint
);

-- One row per schedule: its rule, its next run and its latest runs.
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
    tick_at timestamptz,  -- the tick of the next run where next_run_at differs from it: jitter, a retry, run_now
    -- how often a stopped or dead worker, or the loss of the database, ended the current run
    crashes integer not null default 0,
    suspect boolean not null default false,  -- a worker died during the current run, so it runs alone from now on
    checkpoint jsonb,  -- what the next run resumes from
    -- what was edited by hand ('rule', 'jitter' …): the row of a cron definition keeps it
    edited text[] not null default '{}',
    constraint forge_schedules_once unique nulls not distinct (tenant_id, type, key),
    constraint forge_schedules_every check (every > '00:00:00'),
    constraint forge_schedules_missed check (missed in ('once', 'skip', 'all')),
    constraint forge_schedules_priority check (priority in (0, 25, 50, 75, 100)),
    constraint forge_schedules_rule check ((every is null) or (cron is null))
);

-- One row per minute, job type, queue and writer; per hour once older than 48 hours.
create table forge_statistics (
    minute timestamptz not null,
    job_type varchar(255) not null,
    queue varchar(255) not null,
    -- the incarnation of a worker; all zeros for rows that several writers share
    writer uuid not null default '00000000-0000-0000-0000-000000000000',
    completed bigint not null default 0,
    failed bigint not null default 0,  -- jobs that ended as failed or dead_letter
    retried bigint not null default 0,  -- attempts that failed and are tried again
    -- attempts that were lost: their worker or process died, or the database went away
    crashed bigint not null default 0,
    cancelled bigint not null default 0,
    released bigint not null default 0,  -- attempts that a stopping worker gave back
    snoozed bigint not null default 0,
    reprocessed bigint not null default 0,  -- dead letters that became new jobs
    wait_buckets smallint[] not null default '{}',  -- seconds from scheduled_at to the start of an attempt
    wait_counts bigint[] not null default '{}',
    run_buckets smallint[] not null default '{}',  -- seconds from the start of an attempt to its end
    run_counts bigint[] not null default '{}',
    primary key (minute, job_type, queue, writer)
);

-- One row per five minutes, tenant and writer; per hour once older than 48 hours.
create table forge_tenant_statistics (
    minute timestamptz not null,  -- the beginning of the five minutes
    tenant_id bigint not null,
    writer uuid not null default '00000000-0000-0000-0000-000000000000',  -- as in forge_statistics
    completed bigint not null default 0,
    failed bigint not null default 0,
    retried bigint not null default 0,
    crashed bigint not null default 0,
    cancelled bigint not null default 0,
    released bigint not null default 0,
    snoozed bigint not null default 0,
    reprocessed bigint not null default 0,
    primary key (tenant_id, minute, writer)
);

-- One row per worker that is alive or was until recently.
create table forge_workers (
    id uuid primary key,
    incarnation uuid not null,  -- identifies one process: a restart under the same id has another one
    hostname text not null,
    pid integer not null,
    version text not null,
    capabilities text[] not null default '{}',
    queues text[],
    job_types text[] not null default '{}',
    max_concurrent integer not null,
    running integer not null default 0,
    draining boolean not null default false,
    started_at timestamptz not null default now(),
    last_heartbeat timestamptz not null default now(),
    schedule_types text[] not null default '{}',
    drained_at timestamptz,  -- since when it claims nothing, until it is resumed or starts again; null: it claims
    drained_by text,
    drain_reason text
);

-- One row per registered job type.
create table forge_job_types (
    name varchar(255) primary key,
    queue varchar(255) not null default 'default',
    priority integer not null default 50,
    max_attempts integer not null default 3,
    timeout interval not null default '01:00:00',
    worker_capability varchar(255),
    category varchar(32),
    requires text[],  -- fields that every payload must have; null: the fields of the category
    idempotent text,  -- source of its idempotency key: null, 'input', 'input.a.b' (a field), 'function' (Python code)
    dead_letter boolean not null default true,
    isolation varchar(32) not null default 'none',
    retry jsonb,
    input_schema jsonb,
    output_schema jsonb,
    updated_at timestamptz not null default now(),
    allow_sensitive text[] not null default '{}',
    description text  -- the docstring of its handler
);

-- One row per registered schedule type.
create table forge_schedule_types (
    name varchar(255) primary key,
    priority integer not null default 50,
    worker_capability varchar(255),
    input_schema jsonb,
    updated_at timestamptz not null default now()
);

-- One row per pause of a type, a queue, or a type in a queue.
create table forge_pauses (
    id uuid primary key default forge_uuidv7(),
    type varchar(255),  -- of jobs or, without a queue, of schedules too; null: every type
    queue varchar(255),  -- null: every queue
    until timestamptz,  -- when it ends by itself; null: when it is removed
    reason text not null,
    actor text,
    created_at timestamptz not null default now(),
    -- requests such as forge.cancel are carried out whatever is paused
    constraint forge_pauses_once unique nulls not distinct (type, queue),
    -- requests such as forge.cancel are carried out whatever is paused
    constraint forge_pauses_builtin check ((not starts_with(type, 'forge.')) and (queue <> 'forge')),
    -- requests such as forge.cancel are carried out whatever is paused
    constraint forge_pauses_target check ((type is not null) or (queue is not null))
);

-- One row per waiting job where another transport than PostgreSQL delivers jobs.
create table forge_outbox (
    id bigint generated always as identity primary key,
    job_id uuid not null constraint forge_outbox_once unique,
    send_at timestamptz not null default now(),
    created_at timestamptz not null default now(),
    sends integer not null default 0  -- how often its message was sent
);

-- One row per request of a person or program: cancel, delete, reprocess, discard.
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

-- The current and the previous key that callers are signed with.
create table forge_signing_keys (
    is_current boolean primary key,
    inner_pad bytea not null,
    outer_pad bytea not null,
    created_at timestamptz not null default now()
);

-- One row per applied migration.
create table forge_migrations (
    version integer primary key,
    name text not null,
    applied_at timestamptz not null default now()
);
