-- What the database checks and records on every write: the lifecycle of jobs, the owners of
-- idempotency keys, reviews and counts of dead letters, and the outbox.

-- Jobs --------------------------------------------------------------------------------------------

-- Whether a change of a job is not one of the allowed ones, each listed as old status, growth of the
-- lease, new status. A job that was ever claimed has a worker.
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
    if old.status = new.status and old.lease = new.lease then
        raise exception 'job % cannot have priority % and max_attempts %', new.id, new.priority, new.max_attempts
            using errcode = 'check_violation', constraint = 'forge_jobs_begin',
                  hint = 'use one of the priorities 0, 25, 50, 75, 100 and at least one attempt';
    elsif old.status in ('completed', 'failed', 'dead_letter', 'cancelled') then
        raise exception '%', moved
            using errcode = 'check_violation', constraint = 'forge_jobs_lifecycle',
                  hint = 'a final job is never revived; dispatch a new job, or reprocess its dead letter';
    else
        raise exception '%', moved
            using errcode = 'check_violation', constraint = 'forge_jobs_lifecycle',
                  hint = 'let a worker change it; a claim sets worker_id and lease = lease + 1';
    end if;
end
$$;

create trigger forge_jobs_limits
    after update of priority, max_attempts on forge_jobs
    for each row when (new.priority <> all ('{0, 25, 50, 75, 100}') or new.max_attempts < 1)
    execute function forge_refuse_job();

-- PostgreSQL prepares a WHEN clause again for every statement, so its length and its columns cost time.
-- It lets the two most frequent moves pass, and calls a function for all others.
create trigger forge_jobs_lifecycle
    after update of status, lease, worker_id on forge_jobs
    for each row when (
        (old.status <> 'running' or new.status <> 'completed' or new.lease <> old.lease)
        and (old.status <> 'pending' or new.status <> 'running' or new.lease <> old.lease + 1
             or new.worker_id is null)
        and forge_forbids_move(old.status, new.status, new.lease - old.lease, new.worker_id, new.lease)
    )
    execute function forge_refuse_job();

-- Forge's statements count each change of a job in its version; this counts those of other writers.
-- After, not before: a trigger before each row would lock every row first, with a record in the WAL.
create function forge_count_change() returns trigger
    language plpgsql security definer as $$
begin
    update forge_jobs set version = version + 1 where id = new.id;
    return null;
end
$$;

create trigger forge_jobs_version
    after update on forge_jobs
    for each row when (new.version = old.version)
    execute function forge_count_change();

-- New jobs and their keys --------------------------------------------------------------------------

-- A job begins as pending, and its key belongs to one job per tenant, also for rows that are inserted or
-- copied by hand. Operands are cast to the types of the operator, so that no operator created by another
-- role matches better.
create function forge_begin_job() returns trigger language plpgsql security definer as $$
declare
    holder uuid := case
        when new.tenant_id is null
            then (select known.job_id from forge_idempotency_keys as known
                  where known.tenant_id is null and known.key::text = new.idempotency_key::text)
            else (select known.job_id from forge_idempotency_keys as known
                  where known.tenant_id = new.tenant_id and known.key::text = new.idempotency_key::text)
    end;
begin
    if new.status::text <> 'pending' or new.lease <> 0 or new.attempts <> 0
       or new.priority <> all ('{0, 25, 50, 75, 100}') or new.max_attempts < 1 then
        raise exception 'job % cannot begin with status %, lease %, priority % and max_attempts %',
            new.id, new.status, new.lease, new.priority, new.max_attempts
            using errcode = 'check_violation', constraint = 'forge_jobs_begin',
                  hint = 'insert it as pending, with one of the priorities 0, 25, 50, 75, 100 and at least one attempt';
    end if;
    if holder is null then
        insert into forge_idempotency_keys as known (tenant_id, key, job_id)
        values (new.tenant_id, new.idempotency_key, new.id)
        on conflict on constraint forge_idempotency_keys_unique do update set job_id = known.job_id
        returning known.job_id into holder;
    end if;
    if holder <> new.id then
        raise exception 'idempotency key % of % already belongs to job %', quote_literal(new.idempotency_key::text),
            coalesce('tenant ' || new.tenant_id::text, 'no tenant'), holder
            using errcode = 'unique_violation', constraint = 'forge_idempotency_keys_unique',
                  table = 'forge_idempotency_keys',
                  hint = 'use another key, or dispatch with forge_dispatch or the library, which return that job';
    end if;
    return null;
end
$$;

-- After, not before: a trigger before each row would keep COPY from inserting rows in batches. One
-- trigger for both checks: PostgreSQL prepares each WHEN clause again for every statement.
create trigger forge_jobs_begin
    after insert on forge_jobs
    for each row when (new.status <> 'pending' or new.lease <> 0 or new.attempts <> 0
                       or new.priority <> all ('{0, 25, 50, 75, 100}') or new.max_attempts < 1
                       or new.idempotency_key is not null)
    execute function forge_begin_job();

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

-- Dead letters ------------------------------------------------------------------------------------

-- A worker of an older version may insert no fingerprint; every dead letter needs one for its group.
create function forge_name_cause() returns trigger language plpgsql as $$
begin
    new.fingerprint := left(md5(concat_ws('|', new.job_type, coalesce(new.category, ''),
                                          coalesce(new.error_class, ''), new.exception)), 16);
    return new;
end
$$;

create trigger forge_dead_letters_cause before insert on forge_dead_letters
    for each row when (new.fingerprint is null or new.fingerprint = '') execute function forge_name_cause();

-- A review is final and names its reviewer and the reason; only a new job can be reviewed again.
create function forge_refuse_review() returns trigger language plpgsql as $$
begin
    raise exception 'dead letter % is already % and cannot become %', old.dlq_id, old.status, new.status
        using errcode = 'check_violation', constraint = 'forge_dead_letters_review',
              hint = 'reprocess the dead letter of its new job, or dispatch a new job';
end
$$;

create trigger forge_dead_letters_review
    after update of status, reviewed_at, reviewed_by, notes, new_job_id, edited_payload, request_id
    on forge_dead_letters
    for each row when (
        old.status <> 'pending_review'
        and (new.status, new.reviewed_at, new.reviewed_by, new.notes, new.new_job_id, new.edited_payload,
             new.request_id)
            is distinct from
            (old.status, old.reviewed_at, old.reviewed_by, old.notes, old.new_job_id, old.edited_payload,
             old.request_id)
    )
    execute function forge_refuse_review();

create function forge_count_dead_letters() returns trigger
    language plpgsql security definer as $$
begin
    if tg_op in ('UPDATE', 'DELETE') then
        insert into forge_dead_letter_counts
            (tenant_id, status, job_type, category, error_class, exception, place, fingerprint, letters)
        select tenant_id, status, job_type, category, error_class, exception, place, fingerprint, -count(*)
        from old_rows
        group by 1, 2, 3, 4, 5, 6, 7, 8;
    end if;
    if tg_op in ('INSERT', 'UPDATE') then
        insert into forge_dead_letter_counts
            (tenant_id, status, job_type, category, error_class, exception, place, fingerprint, letters,
             first_seen, last_seen, sample)
        select tenant_id, status, job_type, category, error_class, exception, place, fingerprint, count(*),
               min(created_at), max(created_at), max(dlq_id)
        from new_rows
        group by 1, 2, 3, 4, 5, 6, 7, 8;
    end if;
    return null;
end
$$;

create trigger forge_dead_letters_added after insert on forge_dead_letters
    referencing new table as new_rows
    for each statement execute function forge_count_dead_letters();
create trigger forge_dead_letters_changed after update on forge_dead_letters
    referencing old table as old_rows new table as new_rows
    for each statement execute function forge_count_dead_letters();
create trigger forge_dead_letters_removed after delete on forge_dead_letters
    referencing old table as old_rows
    for each statement execute function forge_count_dead_letters();

-- Outbox ------------------------------------------------------------------------------------------

-- A job due later than a message can be delayed gets its message 15 minutes before. Runs as its owner:
-- a role that can dispatch does not need the right to write messages.
create function forge_add_to_outbox() returns trigger
    language plpgsql security definer as $$
declare
    first_send constant timestamptz := greatest(new.scheduled_at - interval '15 minutes', now());
begin
    if tg_op = 'INSERT' then
        insert into forge_outbox (job_id, send_at) values (new.id, first_send);
    else
        insert into forge_outbox (job_id, send_at) values (new.id, first_send)
        on conflict (job_id) do update set send_at = excluded.send_at, sends = 0;
    end if;
    return null;
end
$$;

-- Every way to dispatch or release a job leaves a row: Python, SQL, COPY, a rescue.
create trigger forge_jobs_outbox
    after insert on forge_jobs
    for each row when (new.queue <> 'forge')
    execute function forge_add_to_outbox();

create trigger forge_jobs_outbox_again
    after update of status, scheduled_at on forge_jobs
    for each row when (
        new.status in ('pending', 'retry') and new.queue <> 'forge'
        and (old.status not in ('pending', 'retry') or new.scheduled_at <> old.scheduled_at)
    )
    execute function forge_add_to_outbox();

-- Where PostgreSQL is the transport, the outbox has no reader, and a disabled trigger costs nothing.
-- outbox/enable and outbox/disable switch them.
alter table forge_jobs disable trigger forge_jobs_outbox, disable trigger forge_jobs_outbox_again;
