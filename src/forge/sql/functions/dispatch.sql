-- Runs with the last migration, in its transaction, so that a new column needs no second definition
-- of forge_dispatch. A change to this file alone needs a migration too: one that has only a comment.

-- -> pending: inserts one job, in the caller's transaction and with the caller's rights. Returns its id,
-- or the id of the job that already holds its idempotency key.
create or replace function forge_dispatch(
    job_type text,
    input jsonb default '{}',
    priority text default null,
    scheduled_at timestamptz default null,
    delay interval default null,
    idempotency_key text default null,
    tenant_id bigint default null,
    correlation_id uuid default null,
    payload_version text default null,
    queue text default null,
    tags text[] default null,
    expires_at timestamptz default null,
    auth jsonb default null,
    meta jsonb default null,
    -- off by default: commits with a notification wait for each other
    notify boolean default false
    /* generated arguments */ /* end */
) returns uuid language plpgsql as $$
#variable_conflict use_column
declare
    new_input jsonb := coalesce(forge_dispatch.input, '{}');
    tenant bigint := forge_dispatch.tenant_id;
    correlation uuid := forge_dispatch.correlation_id;
    version text;
    known_type forge_job_types;
    key text;
    job_id uuid := forge_uuidv7();
    known_id uuid;
begin
    select * into known_type from forge_job_types where name = forge_dispatch.job_type;
    if starts_with(forge_dispatch.job_type, 'forge.') then
        raise exception '% is a built-in job type', forge_dispatch.job_type
            using errcode = 'insufficient_privilege', hint = 'use cancel, delete or run_now of the API or the library';
    elsif known_type.name is null then
        raise exception 'unknown job type %', coalesce(quote_literal(forge_dispatch.job_type), 'null')
            using errcode = 'undefined_object',
                  hint = 'start a worker that has it, or run `forge migrate --app module:app`';
    elsif forge_dispatch.scheduled_at is not null and forge_dispatch.delay is not null then
        raise exception 'a job has either scheduled_at or delay, not both'
            using errcode = 'invalid_parameter_value', hint = 'leave one out';
    elsif forge_dispatch.delay not between '0' and '36500 days' then
        raise exception 'delay % is out of range', forge_dispatch.delay
            using errcode = 'invalid_parameter_value', hint = 'use zero or more, up to 36500 days';
    end if;
    perform forge_check_json(new_input, 'the input of ' || known_type.name);
    perform forge_refuse_redacted(new_input, 'the input of ' || known_type.name);
    perform forge_check_json(forge_dispatch.auth, 'auth');
    perform forge_check_json(forge_dispatch.meta, 'meta');
    perform forge_check_name(tag, 'a tag') from unnest(forge_dispatch.tags) as tag;
    /* generated checks */ /* end */

    perform forge_check_references(known_type, new_input);
    version := coalesce(forge_payload_version(new_input), forge_dispatch.payload_version, '1.0');
    if version <> forge_dispatch.payload_version then
        raise exception '$.payload_version in the payload and the argument payload_version differ'
            using errcode = 'invalid_parameter_value', hint = 'leave one of them out';
    elsif length(forge_check_name(version, 'payload_version')) > 32 then
        raise exception '$.payload_version must be text of 1 to 32 characters'
            using errcode = 'invalid_parameter_value', hint = 'such as "1.0"';
    end if;
    if known_type.category is not null then
        new_input := forge_ruled_payload(known_type, new_input, tenant, correlation, forge_dispatch.idempotency_key);
        tenant := new_input ->> 'tenant_id';
        correlation := new_input ->> 'correlation_id';
        key := new_input ->> 'idempotency_key';
    elsif forge_dispatch.idempotency_key is null then
        key := forge_idempotency_key(known_type.name, known_type.idempotent, new_input);
    else
        key := forge_check_name(forge_dispatch.idempotency_key, 'idempotency_key');
    end if;
    if octet_length(new_input::text) > 10240 then
        raise warning 'the payload of % is larger than 10,240 bytes', known_type.name
            using hint = 'store the content elsewhere and pass a reference';
    end if;
    if key is not null then
        select taken.job_id into known_id
        from forge_take_keys(array[tenant], array[key], array[job_id]) as taken;
        if known_id <> job_id then
            raise notice 'deduplicated: idempotency key % already belongs to job %', key, known_id;
            return known_id;
        end if;
    end if;

    insert into forge_jobs
        (id, job_type, input, priority, max_attempts, worker_capability, idempotency_key, scheduled_at,
         queue, tenant_id, category, correlation_id, payload_version, auth, expires_at, tags, meta
         /* generated more columns */ /* end */)
    values (
        job_id, known_type.name, new_input,
        coalesce(forge_check_priority(forge_dispatch.priority), known_type.priority),
        known_type.max_attempts, known_type.worker_capability, key,
        coalesce(forge_check_moment(forge_dispatch.scheduled_at, 'scheduled_at'), now())
            + coalesce(forge_dispatch.delay, '0'),
        forge_check_name(coalesce(forge_dispatch.queue, known_type.queue), 'queue'),
        tenant, known_type.category, correlation, version, forge_dispatch.auth,
        forge_check_moment(forge_dispatch.expires_at, 'expires_at'), forge_dispatch.tags, forge_dispatch.meta
        /* generated more values */ /* end */);
    if forge_dispatch.notify then
        perform pg_notify('forge_wake', '');
    end if;
    return job_id;
end
$$;

-- A function with another list of arguments is another function to PostgreSQL. Arguments are only
-- added, so the newest has the most: the roles that can call an earlier one can call the newest, and
-- the earlier ones go.
do $$
declare
    newest regprocedure;
    found record;
    role_name text;
begin
    for found in
        select function.oid::pg_catalog.regprocedure as signature, function.proacl as acl
        from pg_catalog.pg_proc as function
        where function.pronamespace = (
                  select oid from pg_catalog.pg_namespace where nspname = pg_catalog.current_schema())
          and function.proname = 'forge_dispatch'
        order by function.pronargs desc, function.oid desc
    loop
        if newest is null then
            newest := found.signature;
            continue;
        end if;
        for role_name in
            select grantee::pg_catalog.regrole
            from pg_catalog.aclexplode(found.acl)
            where privilege_type = 'EXECUTE' and grantee <> 0
        loop
            execute pg_catalog.format('grant execute on function %s to %s', newest, role_name);
        end loop;
        execute pg_catalog.format('drop function %s', found.signature);
    end loop;
end
$$;
