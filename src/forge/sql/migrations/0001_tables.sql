-- Tables and their indexes, jobs first. The functions in this file are the ones that column defaults
-- and indexes call.

do $$
begin
    if current_setting('server_version_num')::int >= 180000 then
        create function forge_uuidv7() returns uuid
            language sql volatile parallel safe
            return uuidv7();
    else
        -- Replace the first 48 random bits of a UUIDv4 with the time in milliseconds, then set version 7.
        create function forge_uuidv7() returns uuid
            language sql volatile parallel safe
            return encode(
                set_bit(set_bit(overlay(
                    uuid_send(gen_random_uuid())
                    placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
                    from 1 for 6), 52, 1), 53, 1),
                'hex')::uuid;
    end if;
end
$$;

-- A lane holds the jobs that the same workers can claim at the same priority. The low seven bits are
-- 100 - priority: 0 for critical, 100 for background. The other bits are a hash of the rest.
create function forge_lane(job_type text, queue text, worker_capability text, priority integer)
    returns bigint language sql immutable parallel safe
    return (hashtextextended(job_type, hashtextextended(queue, hashtextextended(coalesce(worker_capability, ''), 0)))
        & ~127::bigint) | (100 - priority);

-- Ids of dead letters and audit events. They grow with time but are not consecutive: the gap between
-- two of a tenant's ids must not reveal how many rows other tenants created. Microseconds since 2020,
-- then two bits of a sequence for rows of the same microsecond; below 2^53 until the year 2091.
create sequence forge_numbers;
create function forge_new_number() returns bigint
    language sql volatile
    return (((extract(epoch from clock_timestamp()) - 1577836800) * 1000000)::bigint << 2)
           | (nextval('forge_numbers') & 3);

-- One row per job. The columns that claims, acks and guards read come first, because PostgreSQL walks
-- over all earlier columns of a row to reach one.
create table forge_jobs (
    id uuid primary key default forge_uuidv7(),
    -- grows by one at every claim; an ack with an older lease is rejected
    lease bigint not null default 0,
    -- grows by one at every change of the row
    version bigint not null default 0,
    status varchar(32) not null default 'pending',
    worker_id uuid,
    attempts integer not null default 0,
    max_attempts integer not null default 3,
    priority integer not null default 50,
    -- attempts ended by a stopped or dead worker, or by the loss of the database
    crashes integer not null default 0,
    scheduled_at timestamptz not null default now(),
    created_at timestamptz not null default now(),
    -- how often its process died while it ran alone
    lone_crashes integer not null default 0,
    progress_percent integer default 0,
    -- a worker died while it ran this job, so it runs alone from now on
    suspect boolean not null default false,
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
    -- what the next attempt resumes from
    checkpoint jsonb,
    -- the time it was dispatched for, once scheduled_at has moved
    original_scheduled_at timestamptz
) with (
    -- Leaves room on the page for the row versions that a claim and a completion write: a fifth less WAL
    -- and an eighth less time than versions on another page.
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0
);

-- serves jobs/survey, jobs/claim
create index forge_jobs_ready on forge_jobs
    (forge_lane(job_type, queue, worker_capability, priority), scheduled_at, id)
    where status in ('pending', 'retry');
-- serves jobs/rescue, jobs/reconcile
create index forge_jobs_owned on forge_jobs (worker_id)
    where status in ('claimed', 'running');
-- serves jobs/page_ended: jobs that did not succeed; a job that succeeds never enters it
create index forge_jobs_ended on forge_jobs (status, id)
    where status in ('failed', 'dead_letter', 'cancelled');
-- serves lists of a tenant's jobs, newest first. Jobs without a tenant are not in it and cost nothing;
-- for the others dispatch and drain write about a quarter more WAL.
create index forge_jobs_tenant on forge_jobs (tenant_id, id) where tenant_id is not null;
-- serve jobs/page_of_parent, page_of_original, page_of_correlation, page_of_key and count_related. Jobs
-- without the column are not in them and cost nothing.
create index forge_jobs_parent on forge_jobs (parent_id, id) where parent_id is not null;
create index forge_jobs_original on forge_jobs (retry_of, id) where retry_of is not null;
create index forge_jobs_correlation on forge_jobs (correlation_id, id) where correlation_id is not null;
create index forge_jobs_key on forge_jobs (idempotency_key, id) where idempotency_key is not null;

-- One row per attempt that did not succeed.
create table forge_attempts (
    job_id uuid not null,
    lease bigint not null,
    attempt integer not null,
    tenant_id bigint,
    worker_id uuid,
    -- retry, failed, dead_letter, lost, crashed or released
    outcome varchar(32) not null,
    error_class varchar(32),
    exception text,
    error text,
    trace text,
    started_at timestamptz,
    ended_at timestamptz not null default now(),
    primary key (job_id, lease)
);

-- One row per tenant and idempotency key, with the job that holds it.
create table forge_idempotency_keys (
    tenant_id bigint,
    key varchar(255) not null,
    job_id uuid not null,
    created_at timestamptz not null default now(),
    constraint forge_idempotency_keys_unique unique nulls not distinct (tenant_id, key)
);
-- serves idempotency_keys/prune
create index forge_idempotency_keys_created on forge_idempotency_keys (created_at);

-- One row per job that failed for good.
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
    -- a hash of the cause; letters with the same fingerprint are one group
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
    -- the forge.reprocess job that created new_job_id; null for a person
    request_id uuid,
    -- module:function of the innermost frame in the user's own code
    place text,
    constraint forge_dead_letters_status check (status in ('pending_review', 'reprocessed', 'discarded'))
);

-- serves dead_letters/list, choose
create index forge_dead_letters_listed on forge_dead_letters (status, dlq_id);
-- serves dead_letters/list_of_tenant, choose_of_tenant
create index forge_dead_letters_tenant on forge_dead_letters (tenant_id, status, dlq_id)
    where tenant_id is not null;
-- serves dead_letters/list_group, choose_group
create index forge_dead_letters_group on forge_dead_letters (fingerprint, status, dlq_id);
-- serves dead_letters/list_group_of_tenant, choose_group_of_tenant
create index forge_dead_letters_tenant_group on forge_dead_letters (tenant_id, fingerprint, status, dlq_id)
    where tenant_id is not null;
-- serves dead_letters/prune
create index forge_dead_letters_reviewed on forge_dead_letters (reviewed_at) where status <> 'pending_review';
-- The primary key comes last: while the table is empty these indexes cost the same, and the planner
-- takes the newest.
alter table forge_dead_letters add primary key (dlq_id);

-- Changes in the number of dead letters per cause, one row per change. Rows are only added, so that
-- writers never wait for each other; a worker sums them up regularly.
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
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);

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
    -- the tick of the next run where next_run_at differs from it: jitter, a retry, run_now
    tick_at timestamptz,
    -- how often a stopped or dead worker, or the loss of the database, ended the current run
    crashes integer not null default 0,
    -- a worker died during the current run, so it runs alone from now on
    suspect boolean not null default false,
    -- what the next run resumes from
    checkpoint jsonb,
    constraint forge_schedules_once unique nulls not distinct (tenant_id, type, key),
    constraint forge_schedules_missed check (missed in ('once', 'skip', 'all')),
    constraint forge_schedules_priority check (priority in (0, 25, 50, 75, 100)),
    constraint forge_schedules_rule check (every is null or cron is null),
    constraint forge_schedules_every check (every > interval '0')
) with (
    fillfactor = 70,
    -- Every run leaves two dead rows in a table that does not grow.
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- serves schedules/survey, schedules/claim
create index forge_schedules_due on forge_schedules
    (forge_lane(type, '', worker_capability, priority), next_run_at, id)
    where enabled and running_since is null and next_run_at is not null;
-- serves schedules/rescue, schedules/reconcile
create index forge_schedules_owned on forge_schedules (worker_id)
    where running_since is not null;

-- One row per worker that is alive or was until recently.
create table forge_workers (
    id uuid primary key,
    -- identifies one process: a restart under the same id has another one
    incarnation uuid not null,
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
    schedule_types text[] not null default '{}'
) with (fillfactor = 50);

-- One row per registered job type.
create table forge_job_types (
    name varchar(255) primary key,
    queue varchar(255) not null default 'default',
    priority integer not null default 50,
    max_attempts integer not null default 3,
    timeout interval not null default '1 hour',
    worker_capability varchar(255),
    category varchar(32),
    -- fields that every payload must have; null: the fields of the category
    requires text[],
    -- source of its idempotency key: null, 'input', 'input.a.b' (a field), 'function' (Python code)
    idempotent text,
    dead_letter boolean not null default true,
    isolation varchar(32) not null default 'none',
    retry jsonb,
    input_schema jsonb,
    output_schema jsonb,
    updated_at timestamptz not null default now(),
    allow_sensitive text[] not null default '{}',
    -- the docstring of its handler
    description text
);

-- One row per registered schedule type.
create table forge_schedule_types (
    name varchar(255) primary key,
    priority integer not null default 50,
    worker_capability varchar(255),
    input_schema jsonb,
    updated_at timestamptz not null default now()
);

-- One row per waiting job where another transport than PostgreSQL delivers jobs. It is inserted in the
-- transaction that makes the job wait, and the claim deletes it.
create table forge_outbox (
    id bigint generated always as identity primary key,
    job_id uuid not null,
    send_at timestamptz not null default now(),
    created_at timestamptz not null default now(),
    -- how often its message was sent
    sends integer not null default 0,
    constraint forge_outbox_once unique (job_id)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);
-- serves outbox/take
create index forge_outbox_due on forge_outbox (send_at);

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
-- serves audit/list_of_letter, list_of_job, list_of_tenant
create index forge_audit_events_letter on forge_audit_events (dlq_id, id) where dlq_id is not null;
create index forge_audit_events_job on forge_audit_events (job_id, id) where job_id is not null;
create index forge_audit_events_schedule on forge_audit_events (schedule_id, id) where schedule_id is not null;
create index forge_audit_events_tenant on forge_audit_events (tenant_id, id) where tenant_id is not null;

-- The current and the previous key that callers are signed with. `forge migrate --roles` derives them
-- from [auth] secret; each is stored padded for the inner and the outer hash of HMAC. Only the owner
-- reads them. The previous key stays valid while servers restart with a new secret.
create table forge_signing_keys (
    is_current boolean primary key,
    inner_pad bytea not null,
    outer_pad bytea not null,
    created_at timestamptz not null default now()
);
