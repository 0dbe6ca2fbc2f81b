-- Dead letters by cause: fingerprints, counts that cost the same however many there are, and the
-- indexes of their lists.

-- where in the code it failed: module:function of the innermost function that is the user's own
alter table forge_dead_letters add column place text;
update forge_dead_letters
set fingerprint = left(md5(concat_ws('|', job_type, coalesce(category, ''), coalesce(error_class, ''), exception)), 16)
where fingerprint is null or fingerprint = '';

-- A worker of the previous version may know no fingerprint; a group has one in any case.
create function forge_name_cause() returns trigger language plpgsql as $$
begin
    new.fingerprint := left(md5(concat_ws('|', new.job_type, coalesce(new.category, ''),
                                          coalesce(new.error_class, ''), new.exception)), 16);
    return new;
end
$$;

create trigger forge_dead_letters_cause before insert on forge_dead_letters
    for each row when (new.fingerprint is null or new.fingerprint = '') execute function forge_name_cause();

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
-- Last of all: while the table is empty these indexes look alike to the planner, and it takes the newest.
alter table forge_dead_letters add primary key (dlq_id);
-- serves audit/list_of_letter, list_of_job, list_of_tenant
create index forge_audit_events_letter on forge_audit_events (dlq_id, id) where dlq_id is not null;
create index forge_audit_events_job on forge_audit_events (job_id, id) where job_id is not null;
create index forge_audit_events_tenant on forge_audit_events (tenant_id, id) where tenant_id is not null;

-- How many dead letters there are of each cause: what was added and taken away, a row per change of
-- a cause. Nobody waits for anybody, since rows are only added; a worker sums them up now and then.
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

insert into forge_dead_letter_counts
    (tenant_id, status, job_type, category, error_class, exception, place, fingerprint, letters,
     first_seen, last_seen, sample)
select tenant_id, status, job_type, category, error_class, exception, place, fingerprint, count(*),
       min(created_at), max(created_at), max(dlq_id)
from forge_dead_letters
group by 1, 2, 3, 4, 5, 6, 7, 8;

alter table forge_dead_letter_counts enable row level security;
create policy forge_tenant on forge_dead_letter_counts
    using (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()));

-- A review is for good, with who made it and why: whoever wants another makes a new job.
create function forge_refuse_review() returns trigger language plpgsql as $$
begin
    raise exception 'dead letter % is % already and cannot become %', old.dlq_id, old.status, new.status
        using errcode = 'check_violation', constraint = 'forge_dead_letters_review',
              hint = 'reprocess the dead letter of the job that it became, or dispatch a new job';
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

-- The key of a job that does again what another did: the old one and the time, shortened with a hash
-- where that is too long.
create function forge_retry_key(old_key text, dlq_id bigint, at numeric) returns text
    language sql immutable parallel safe
    return case
        when old_key is null then 'dlq_' || dlq_id || '_retry_' || round(at, 3)
        when length(old_key || '_retry_' || round(at, 3)) <= 255 then old_key || '_retry_' || round(at, 3)
        else left(old_key, 255 - 33 - length('_retry_' || round(at, 3))) || '~' || md5(old_key) || '_retry_' || round(at, 3)
    end;

-- About how many jobs there are by what they have in some columns, from the planner's statistics. It
-- runs as its owner, since callers that row security binds may not read such statistics, and answers
-- operators, and logins that row security does not bind. Operands have the types of the operator, so that none created later fits better.
create function forge_job_estimates() returns table (name text, value text, jobs bigint)
    language sql stable security definer as $$
    with whole as (
        select greatest(reltuples, 0)::bigint as jobs, relnamespace
        from pg_catalog.pg_class where oid = 'forge_jobs'::pg_catalog.regclass::oid
    ), known as (
        select stats.* from pg_catalog.pg_stats as stats
        join pg_catalog.pg_namespace as place on place.nspname = stats.schemaname
        join whole on whole.relnamespace = place.oid
        where stats.tablename = 'forge_jobs' and stats.attname in ('status', 'category', 'job_type', 'error_class')
    ), shares as (
        select attname, common.value, common.share
        from known, unnest(most_common_vals::text::text[], most_common_freqs) as common (value, share)
        union all
        select attname, null, null_frac from known where null_frac > 0::real
    )
    select shares.attname::text, shares.value, (shares.share::float8 * whole.jobs::float8)::bigint
    from shares, whole
    where case when forge_is_bound() then forge_is_operator() else true end
$$;
