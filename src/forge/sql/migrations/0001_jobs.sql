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
    concurrency_key varchar(255),
    tags text[],
    meta jsonb,
    checkpoint jsonb,
    -- when it was dispatched for, once scheduled_at says something else
    original_scheduled_at timestamptz
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

-- Takes idempotency keys for jobs that are inserted next, and returns which job holds each. It runs as
-- its owner, so that no role needs the right to write keys: a connection that acts for a tenant takes
-- that tenant's keys only, and no key for a job that exists.
create function forge_take_keys(tenants bigint[], keys text[], jobs uuid[])
    returns table (tenant_id bigint, key text, job_id uuid) language plpgsql security definer as $$
#variable_conflict use_column
declare
    caller constant jsonb := case when forge_is_bound() then forge_caller() else '{}' end;
    own constant bigint := (caller ->> 'tenant_id'::text)::bigint;
begin
    if caller is null then
        raise exception 'this connection acts for no caller, so that it cannot dispatch; call '
            '`await app.act_for(conn)` or app.act_for(conn, tenant_id=…) first in its transaction'
            using errcode = 'insufficient_privilege';
    elsif own is not null and exists (select from pg_catalog.unnest(tenants) as tenant where tenant is distinct from own) then
        raise exception 'tenant % cannot take an idempotency key of another tenant', own
            using errcode = 'insufficient_privilege', hint = 'dispatch with the tenant_id of this connection';
    elsif exists (select from forge_jobs as job where job.id = any (jobs)) then
        raise exception 'an idempotency key can be taken only for a job that does not exist yet'
            using errcode = 'unique_violation', constraint = 'forge_jobs_pkey', hint = 'give each job a new id';
    end if;
    -- The update changes nothing; it locks and returns the row that was there first, also when that
    -- one was committed only after this statement began.
    return query
    insert into forge_idempotency_keys as known (tenant_id, key, job_id)
    select distinct on (tenant, wanted) tenant, wanted, job
    from unnest(tenants, keys, jobs) with ordinality as wish (tenant, wanted, job, place)
    order by tenant, wanted, place
    on conflict on constraint forge_idempotency_keys_unique do update set job_id = known.job_id
    returning known.tenant_id, known.key::text, known.job_id;
end
$$;

-- A key belongs to one job per tenant, also for rows that are inserted or copied by hand. Operands are
-- cast to the types of the operator, so that none that another role created fits better.
create function forge_hold_key() returns trigger language plpgsql security definer as $$
declare
    holder uuid := case
        when new.tenant_id is null
            then (select known.job_id from forge_idempotency_keys as known
                  where known.tenant_id is null and known.key::text = new.idempotency_key::text)
            else (select known.job_id from forge_idempotency_keys as known
                  where known.tenant_id = new.tenant_id and known.key::text = new.idempotency_key::text)
    end;
begin
    if holder is null then
        insert into forge_idempotency_keys as known (tenant_id, key, job_id)
        values (new.tenant_id, new.idempotency_key, new.id)
        on conflict on constraint forge_idempotency_keys_unique do update set job_id = known.job_id
        returning known.job_id into holder;
    end if;
    if holder <> new.id then
        raise exception 'idempotency key % of % belongs to job % already', quote_literal(new.idempotency_key::text),
            coalesce('tenant ' || new.tenant_id::text, 'no tenant'), holder
            using errcode = 'unique_violation', constraint = 'forge_idempotency_keys_unique',
                  table = 'forge_idempotency_keys',
                  hint = 'use another key, or dispatch with forge_dispatch or the library, which return that job';
    end if;
    return null;
end
$$;

-- After, not before: a trigger before each row would keep COPY from inserting rows in batches.
create trigger forge_jobs_key
    after insert on forge_jobs
    for each row when (new.idempotency_key is not null)
    execute function forge_hold_key();

create function forge_refuse_key_change() returns trigger language plpgsql as $$
begin
    raise exception 'job % cannot change its idempotency key or the tenant of that key', new.id
        using errcode = 'check_violation', constraint = 'forge_jobs_key_change',
              hint = 'cancel the job and dispatch a new one';
end
$$;

create trigger forge_jobs_key_change
    after update of idempotency_key, tenant_id on forge_jobs
    for each row when (new.idempotency_key is distinct from old.idempotency_key
                       or new.idempotency_key is not null and new.tenant_id is distinct from old.tenant_id)
    execute function forge_refuse_key_change();

create table forge_job_types (
    name varchar(255) primary key,
    queue varchar(255) not null default 'default',
    priority integer not null default 50,
    max_attempts integer not null default 3,
    timeout interval not null default '1 hour',
    worker_capability varchar(255),
    category varchar(32),
    -- fields that each payload has; null: what its category says
    requires text[],
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
