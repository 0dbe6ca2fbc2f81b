-- The jobs, the guard of their lifecycle, and the keys that keep a wish from being made twice.

do $$
begin
    if current_setting('server_version_num')::int >= 180000 then
        create function forge_uuidv7() returns uuid
            language sql volatile parallel safe
            return uuidv7();
    else
        -- 48 bits of milliseconds before the random bits of a version 4, then version 7 in its place.
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

-- Jobs that the same workers may take at the same urgency stand in one lane. The low seven bits
-- hold the urgency, 0 for critical to 100 for background; the rest names the lane.
create function forge_lane(job_type text, queue text, worker_capability text, priority integer)
    returns bigint language sql immutable parallel safe
    return (hashtextextended(job_type, hashtextextended(queue, hashtextextended(coalesce(worker_capability, ''), 0)))
        & ~127::bigint) | (100 - priority);

-- The columns that every claim, ack and guard reads come first, so that none of them has to step
-- over the rest of the row.
create table forge_jobs (
    id uuid primary key default forge_uuidv7(),
    lease bigint not null default 0,
    status varchar(32) not null default 'pending',
    worker_id uuid,
    attempts integer not null default 0,
    max_attempts integer not null default 3,
    priority integer not null default 50,
    -- attempts that were ended by us: the worker stopped or died, or the database went away
    crashes integer not null default 0,
    scheduled_at timestamptz not null default now(),
    created_at timestamptz not null default now(),
    lone_crashes integer not null default 0,
    progress_percent integer default 0,
    -- whether a worker died while it ran this job, which runs alone from then on
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
    concurrency_key varchar(255),
    tags text[],
    meta jsonb,
    checkpoint jsonb
) with (
    -- Room for the versions that a claim and a completion leave: on the same page they cost a fifth
    -- less log and an eighth less time than on another.
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
-- serves jobs/list of what went wrong; costs a job that succeeds nothing
create index forge_jobs_ended on forge_jobs (status, id)
    where status in ('failed', 'dead_letter', 'cancelled');

-- Each allowed move of a job: from, by how much its lease grows, to. A job that was ever claimed
-- has a worker.
create function forge_forbids_move(was text, becomes text, growth bigint, owner uuid, lease bigint)
    returns boolean language plpgsql immutable parallel safe as $$
begin
    return owner is null and lease > 0 or was || ' ' || growth || ' ' || becomes <> all (array[
        'pending 0 pending', 'pending 1 claimed', 'pending 0 cancelled',
        'pending 1 running',
        'claimed 0 claimed', 'claimed 1 claimed', 'claimed 0 running', 'claimed 1 running',
        'claimed 0 failed', 'claimed 0 dead_letter', 'claimed 0 pending',
        'claimed 0 retry', 'claimed 0 cancelled',
        'running 0 running', 'running 1 running', 'running 0 completed', 'running 0 retry',
        'running 0 pending', 'running 0 failed', 'running 0 dead_letter',
        'running 0 cancelled', 'running 1 claimed',
        'completed 0 completed',
        'retry 0 retry', 'retry 1 claimed', 'retry 0 failed', 'retry 0 dead_letter',
        'retry 0 cancelled', 'retry 1 running',
        'failed 0 failed',
        'dead_letter 0 dead_letter',
        'cancelled 0 cancelled'
    ]);
end
$$;

create function forge_refuse_job() returns trigger language plpgsql as $$
declare
    moved text := format('job %s cannot go from %s (lease %s) to %s (lease %s)',
                         old.id, old.status, old.lease, new.status, new.lease);
begin
    if tg_op = 'INSERT' then
        raise exception 'job % cannot begin with status %, lease %, priority % and max_attempts %',
            new.id, new.status, new.lease, new.priority, new.max_attempts
            using errcode = 'check_violation', constraint = 'forge_jobs_begin',
                  hint = 'insert it as pending, with one of the priorities 0, 25, 50, 75, 100 and at least one attempt';
    elsif old.status = new.status and old.lease = new.lease then
        raise exception 'job % cannot have priority % and max_attempts %', new.id, new.priority, new.max_attempts
            using errcode = 'check_violation', constraint = 'forge_jobs_begin',
                  hint = 'use one of the priorities 0, 25, 50, 75, 100 and at least one attempt';
    elsif old.status in ('completed', 'failed', 'dead_letter', 'cancelled') then
        raise exception '%', moved
            using errcode = 'check_violation', constraint = 'forge_jobs_lifecycle',
                  hint = 'a final job is never revived: dispatch a new one, or reprocess its dead letter';
    else
        raise exception '%', moved
            using errcode = 'check_violation', constraint = 'forge_jobs_lifecycle',
                  hint = 'let a worker move it; a claim names the worker and sets lease = lease + 1';
    end if;
end
$$;

create trigger forge_jobs_begin
    after insert on forge_jobs
    for each row when (new.status <> 'pending' or new.lease <> 0 or new.attempts <> 0
                       or new.priority <> all ('{0, 25, 50, 75, 100}') or new.max_attempts < 1)
    execute function forge_refuse_job();

create trigger forge_jobs_limits
    after update of priority, max_attempts on forge_jobs
    for each row when (new.priority <> all ('{0, 25, 50, 75, 100}') or new.max_attempts < 1)
    execute function forge_refuse_job();

-- What a WHEN costs is its length, for it is prepared anew for each statement, and the columns it
-- names: so it lets the two moves of every job's life pass, and asks about all others.
create trigger forge_jobs_lifecycle
    after update of status, lease, worker_id on forge_jobs
    for each row when (
        (old.status <> 'running' or new.status <> 'completed' or new.lease <> old.lease)
        and (old.status <> 'pending' or new.status <> 'running' or new.lease <> old.lease + 1
             or new.worker_id is null)
        and forge_forbids_move(old.status, new.status, new.lease - old.lease, new.worker_id, new.lease)
    )
    execute function forge_refuse_job();

create table forge_idempotency_keys (
    tenant_id bigint,
    key varchar(255) not null,
    job_id uuid not null,
    created_at timestamptz not null default now(),
    constraint forge_idempotency_keys_unique unique nulls not distinct (tenant_id, key)
);
-- serves idempotency_keys/prune
create index forge_idempotency_keys_created on forge_idempotency_keys (created_at);

create table forge_job_types (
    name varchar(255) primary key,
    queue varchar(255) not null default 'default',
    priority integer not null default 50,
    max_attempts integer not null default 3,
    timeout interval not null default '1 hour',
    worker_capability varchar(255),
    category varchar(32),
    requires text[] not null default '{}',
    -- null: no key of its own; 'input': the whole input; 'input.a.b': what lies there;
    -- 'function': made by the type's own code
    idempotent text,
    dead_letter boolean not null default true,
    isolation varchar(32) not null default 'none',
    retry jsonb,
    input_schema jsonb,
    output_schema jsonb,
    updated_at timestamptz not null default now()
);

create table forge_workers (
    id uuid primary key,
    -- one life of the process: a restart under the same id is another one
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
    last_heartbeat timestamptz not null default now()
) with (fillfactor = 50);
