-- Dispatch from SQL, for triggers and other languages, by the rules that Python has.

create function forge_check_name(value text, what text) returns text
    language plpgsql immutable parallel safe as $$
begin
    if value is null or value !~ '\S' then
        raise exception '% must be text that is not empty', what
            using errcode = 'invalid_parameter_value', hint = 'give it at least one visible character';
    elsif length(value) > 255 then
        raise exception '% must have at most 255 characters, not %', what, length(value)
            using errcode = 'string_data_right_truncation', hint = 'shorten it';
    elsif value ~ '[\x01-\x1f\x7f]' then
        raise exception '% has a control character', what
            using errcode = 'invalid_parameter_value', hint = 'remove it';
    end if;
    return value;
end
$$;

create function forge_check_moment(value timestamptz, what text) returns timestamptz
    language plpgsql immutable strict parallel safe as $$
begin
    if value not between '1970-01-01 00:00:00+00' and '9000-12-31 23:59:59+00' then
        raise exception '% % is not a time to run at', what, value
            using errcode = 'invalid_parameter_value', hint = 'use a time between the years 1970 and 9000';
    end if;
    return value;
end
$$;

create function forge_check_priority(value text) returns integer
    language plpgsql immutable strict parallel safe as $$
declare
    found integer := case lower(value)
        when 'critical' then 100 when '100' then 100
        when 'high' then 75 when '75' then 75
        when 'normal' then 50 when '50' then 50
        when 'low' then 25 when '25' then 25
        when 'background' then 0 when '0' then 0
    end;
begin
    if found is null then
        raise exception 'priority % is none of the five', quote_literal(value)
            using errcode = 'invalid_parameter_value',
                  hint = 'use critical (100), high (75), normal (50), low (25) or background (0)';
    end if;
    return found;
end
$$;

-- The key that a type's own rule gives a job: of the whole input, or of what lies at a path in it.
-- It bears the type's name, so that two types may use the same payment.
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
            using errcode = 'invalid_parameter_value', hint = 'give idempotency_key =>';
    end if;
    foreach step in array (string_to_array(idempotent, '.'))[2:] loop
        found := found -> step;
    end loop;
    if coalesce(jsonb_typeof(found), 'null') in ('null', 'object', 'array') then
        raise exception '% needs % for its idempotency key, and the input has no value there',
            job_type, idempotent
            using errcode = 'invalid_parameter_value',
                  hint = 'put it into the input, or give idempotency_key =>';
    end if;
    return forge_check_name(job_type || ':' || (found #>> '{}'), 'the idempotency key');
end
$$;

-- -> pending: one job, in the caller's transaction and with the caller's rights.
-- Returns the id of the job, or of the one that its idempotency key stands for already.
create function forge_dispatch(
    job_type text,
    input jsonb default '{}',
    priority text default null,
    scheduled_at timestamptz default null,
    delay interval default null,
    idempotency_key text default null,
    tenant_id bigint default null,
    correlation_id uuid default null,
    queue text default null,
    tags text[] default null,
    expires_at timestamptz default null,
    auth jsonb default null,
    meta jsonb default null,
    -- a notification makes commits wait for each other, so it is sent only when asked for
    notify boolean default false
) returns uuid language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    wish constant jsonb := coalesce(forge_dispatch.input, '{}');
    kind forge_job_types;
    key text;
    job_id uuid := forge_uuidv7();
    known_id uuid;
begin
    select * into kind from forge_job_types where name = forge_dispatch.job_type;
    if starts_with(forge_dispatch.job_type, 'forge.') then
        raise exception '% is one of Forge''s own', forge_dispatch.job_type
            using errcode = 'insufficient_privilege', hint = 'ask through the API or the library: cancel, delete, run_now';
    elsif kind.name is null then
        raise exception 'nobody registered a job named %', coalesce(quote_literal(forge_dispatch.job_type), 'null')
            using errcode = 'undefined_object',
                  hint = 'start a worker that has it, or run `forge migrate --app module:app`';
    elsif forge_dispatch.scheduled_at is not null and forge_dispatch.delay is not null then
        raise exception 'a job has either scheduled_at or delay, not both'
            using errcode = 'invalid_parameter_value', hint = 'leave one out';
    elsif forge_dispatch.delay not between '0' and '36500 days' then
        raise exception 'delay % is not a time to wait', forge_dispatch.delay
            using errcode = 'invalid_parameter_value', hint = 'use zero or more, up to 36500 days';
    elsif octet_length(wish::text) > 262144 then
        raise exception 'the input of % is % bytes of JSON, the limit is 262144', kind.name, octet_length(wish::text)
            using errcode = 'program_limit_exceeded', hint = 'store the content elsewhere and pass a reference to it';
    end if;
    perform forge_check_name(tag, 'a tag') from unnest(forge_dispatch.tags) as tag;

    key := case
        when forge_dispatch.idempotency_key is null then forge_idempotency_key(kind.name, kind.idempotent, wish)
        else forge_check_name(forge_dispatch.idempotency_key, 'idempotency_key')
    end;
    if key is not null then
        -- The update changes nothing; it locks and returns the row that was there first.
        insert into forge_idempotency_keys as known (tenant_id, key, job_id)
        values (forge_dispatch.tenant_id, key, job_id)
        on conflict on constraint forge_idempotency_keys_unique do update set job_id = known.job_id
        returning known.job_id into known_id;
        if known_id <> job_id then
            raise notice 'deduplicated: idempotency key % stands for job % already', key, known_id;
            return known_id;
        end if;
    end if;

    insert into forge_jobs
        (id, job_type, input, priority, max_attempts, worker_capability, idempotency_key, scheduled_at,
         queue, tenant_id, category, correlation_id, auth, expires_at, tags, meta)
    values (
        job_id, kind.name, wish,
        coalesce(forge_check_priority(forge_dispatch.priority), kind.priority),
        kind.max_attempts, kind.worker_capability, key,
        coalesce(forge_check_moment(forge_dispatch.scheduled_at, 'scheduled_at'), now())
            + coalesce(forge_dispatch.delay, '0'),
        forge_check_name(coalesce(forge_dispatch.queue, kind.queue), 'queue'),
        forge_dispatch.tenant_id, kind.category, forge_dispatch.correlation_id, forge_dispatch.auth,
        forge_check_moment(forge_dispatch.expires_at, 'expires_at'), forge_dispatch.tags, forge_dispatch.meta);
    if forge_dispatch.notify then
        perform pg_notify('forge_wake', '');
    end if;
    return job_id;
end
$$;
