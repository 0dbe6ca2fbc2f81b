-- The idempotency keys of jobs. functions/dispatch.sql has forge_dispatch, which takes them.

-- The idempotency key by a type's own rule: from the whole input, or from one field of it. It begins
-- with the name of the type, so that two types can use the same payment.
create function forge_idempotency_key(job_type text, idempotent text, input jsonb) returns text
    language plpgsql immutable parallel safe as $$
declare
    found jsonb := input;
    step text;
begin
    if idempotent is null then
        return null;
    elsif idempotent = 'input' then
        return job_type || ':' || md5(input::text);
    elsif idempotent = 'function' then
        raise exception 'the idempotency key of % is made by a function that only its own code has', job_type
            using errcode = 'invalid_parameter_value', hint = 'pass idempotency_key =>';
    end if;
    foreach step in array (string_to_array(idempotent, '.'))[2:] loop
        found := found -> step;
    end loop;
    if coalesce(jsonb_typeof(found), 'null') in ('null', 'object', 'array') then
        raise exception '% needs % for its idempotency key, and the input has no value there',
            job_type, idempotent
            using errcode = 'invalid_parameter_value',
                  hint = 'put it into the input, or pass idempotency_key =>';
    end if;
    return forge_check_name(job_type || ':' || (found #>> '{}'), 'the idempotency key');
end
$$;

-- The idempotency key of a reprocessed job: the old key and the time, shortened with a hash where that
-- is too long.
create function forge_retry_key(old_key text, dlq_id bigint, at numeric) returns text
    language sql immutable parallel safe
    return case
        when old_key is null then 'dlq_' || dlq_id || '_retry_' || round(at, 3)
        when length(old_key || '_retry_' || round(at, 3)) <= 255 then old_key || '_retry_' || round(at, 3)
        else left(old_key, 255 - 33 - length('_retry_' || round(at, 3))) || '~' || md5(old_key) || '_retry_' || round(at, 3)
    end;

-- Takes idempotency keys for jobs that are inserted next, and returns which job holds each. It runs as
-- its owner, so that no role needs the right to write keys. A connection that acts for a tenant takes
-- only that tenant's keys, and no key for a job that exists.
create function forge_take_keys(tenants bigint[], keys text[], jobs uuid[])
    returns table (tenant_id bigint, key text, job_id uuid) language plpgsql security definer as $$
#variable_conflict use_column
declare
    caller constant jsonb := case when forge_is_bound() then forge_caller() else '{}' end;
    own constant bigint := (caller ->> 'tenant_id'::text)::bigint;
begin
    if caller is null then
        raise exception 'this connection acts for no caller and cannot dispatch; call '
            '`await app.act_for(conn)` or app.act_for(conn, tenant_id=…) first in its transaction'
            using errcode = 'insufficient_privilege';
    elsif own is not null and exists (select from pg_catalog.unnest(tenants) as tenant where tenant is distinct from own) then
        raise exception 'tenant % cannot take an idempotency key of another tenant', own
            using errcode = 'insufficient_privilege', hint = 'dispatch with the tenant_id of this connection';
    elsif exists (select from forge_jobs as job where job.id = any (jobs)) then
        raise exception 'an idempotency key can be taken only for a job that does not exist yet'
            using errcode = 'unique_violation', constraint = 'forge_jobs_pkey', hint = 'give each job a new id';
    end if;
    -- The update changes nothing. It locks and returns the existing row, even one that was committed
    -- after this statement began.
    return query
    insert into forge_idempotency_keys as known (tenant_id, key, job_id)
    select distinct on (tenant, wanted) tenant, wanted, job
    from unnest(tenants, keys, jobs) with ordinality as new_job (tenant, wanted, job, place)
    order by tenant, wanted, place
    on conflict on constraint forge_idempotency_keys_unique do update set job_id = known.job_id
    returning known.tenant_id, known.key::text, known.job_id;
end
$$;
