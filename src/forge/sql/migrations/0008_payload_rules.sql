-- The rules for payloads of a category: what they carry, and what they must not hold.

alter table forge_job_types add column allow_sensitive text[] not null default '{}';

-- A name of a payload as it is compared: without case and without signs between its words.
create function forge_squashed(name text) returns text
    language sql immutable strict parallel safe
    return regexp_replace(lower(normalize(name, nfkc)), '[^a-z0-9]', '', 'g');

-- One value that was given as an argument, in the payload, or in both: then they must agree.
create function forge_agreed(what text, inside jsonb, outside text) returns text
    language plpgsql immutable parallel safe as $$
declare
    said text := case when jsonb_typeof(inside) in ('string', 'number') then inside #>> '{}' end;
begin
    if said is null and inside is not null and inside <> 'null' then
        raise exception '$.% in the payload is neither text nor a number', what
            using errcode = 'invalid_parameter_value', hint = 'correct it';
    elsif said <> outside and lower(said) <> lower(outside) then
        raise exception '$.% in the payload and the argument % differ', what, what
            using errcode = 'invalid_parameter_value', hint = 'leave one of them out';
    elsif coalesce(said, outside) is null then
        raise exception '$.% is required', what
            using errcode = 'invalid_parameter_value', hint = format('give %s =>, or put it into the payload', what);
    end if;
    return coalesce(said, outside);
end
$$;

-- Refuses a payload that holds what has the name or the looks of a secret, or is a whole text.
-- Card numbers and finer shapes are known to the library alone.
create function forge_check_sensitive(payload jsonb, allowed text[]) returns void
    language plpgsql immutable parallel safe as $$
declare
    free constant text[] := array(
        select forge_squashed(substring(entry from '[^.\[\]$]+[^.$]*$')) from unnest(allowed) as entry);
    found text;
begin
    select entry ->> 'key' into found
    from jsonb_path_query(payload, 'strict $.** ? (@.type() == "object").keyvalue()') as entry,
         forge_squashed(entry ->> 'key') as name
    where name <> all (free)
      and (name ~ '(password|passwd|passphrase|passcode|secret(?!ar)|apikey|authorization|credential|privatekey|accesskey|encryptionkey|signingkey|creditcard|cardnum|socialsecurity|bankaccount|passportnumber|setcookie)|token$|^(pwd|jwt|bearer|cookies?|ssn|cvv|cvc|pin|otp|iban)$'
               and name !~ '(id|ids|ref|refs|reference|uuid|name|type|kind|version|count|counts|limit|size|length|usage|ttl|at|until|expiry|expires|status|policy|hint|url|uri|path)$'
               and jsonb_typeof(entry -> 'value') not in ('null', 'boolean') and entry -> 'value' <> '""'
           or name ~ '(body|contents?|(body|contents?)(html|text|plain|raw|mime|base64|bytes))$'
               and jsonb_typeof(entry -> 'value') = 'string' and entry -> 'value' <> '""'
           or jsonb_typeof(entry -> 'value') = 'string'
               and (length(entry ->> 'value') > 1000
                    or entry ->> 'value' ~ 'eyJ[\w-]{8,}\.[\w-]{4,}\.|-----BEGIN [A-Z0-9 ]*PRIVATE KEY|(AKIA|ASIA)[0-9A-Z]{16}|://[^/\s:@]*:[^/\s@]+@'))
    limit 1;
    if found is not null then
        raise exception 'the payload holds something sensitive under the name %', quote_ident(left(found, 60))
            using errcode = 'invalid_parameter_value',
                  hint = 'store it elsewhere and pass a reference, or allow it with allow_sensitive';
    end if;
end
$$;

-- A payload of a category with its tenant, its correlation id and its key in it, or an error that
-- says what it lacks.
create function forge_ruled_payload(kind forge_job_types, payload jsonb, tenant bigint, correlation uuid, given_key text)
    returns jsonb language plpgsql immutable parallel safe as $$
declare
    envelope constant text[] := array['tenant_id', 'correlation_id', 'idempotency_key'];
    key text;
    missing text;
begin
    if jsonb_typeof(payload) <> 'object' then
        raise exception 'the payload of % must be an object', kind.name using errcode = 'invalid_parameter_value';
    elsif jsonb_typeof(payload -> 'tenant_id') <> 'number' and payload -> 'tenant_id' <> 'null' then
        raise exception '$.tenant_id must be a whole number' using errcode = 'invalid_parameter_value';
    end if;
    select name into missing from unnest(kind.requires) as name
    where name <> all (envelope) and coalesce(payload ->> name, '') = '' limit 1;
    if missing is not null then
        raise exception '$.% is required for a % job', missing, kind.category
            using errcode = 'invalid_parameter_value', hint = 'pass the id of what is meant';
    end if;
    key := case
        when given_key is not null or coalesce(payload -> 'idempotency_key', 'null') <> 'null' or kind.idempotent is null
            then forge_agreed('idempotency_key', payload -> 'idempotency_key', given_key)
        else forge_idempotency_key(kind.name, kind.idempotent,
                                   case kind.idempotent when 'input' then payload - envelope else payload end)
    end;
    perform forge_check_sensitive(payload - envelope, kind.allow_sensitive);
    return payload || jsonb_build_object(
        'tenant_id', forge_agreed('tenant_id', payload -> 'tenant_id', tenant::text)::bigint,
        'correlation_id', forge_agreed('correlation_id', payload -> 'correlation_id', correlation::text)::uuid,
        'idempotency_key', forge_check_name(key, 'idempotency_key'));
end
$$;

-- -> pending: one job, in the caller's transaction and with the caller's rights.
-- Returns the id of the job, or of the one that its idempotency key stands for already.
create or replace function forge_dispatch(
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
    wish jsonb := coalesce(forge_dispatch.input, '{}');
    tenant bigint := forge_dispatch.tenant_id;
    correlation uuid := forge_dispatch.correlation_id;
    version text := '1.0';
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

    if kind.category is not null then
        wish := forge_ruled_payload(kind, wish, tenant, correlation, forge_dispatch.idempotency_key);
        tenant := wish ->> 'tenant_id';
        correlation := wish ->> 'correlation_id';
        key := wish ->> 'idempotency_key';
        version := coalesce(wish ->> 'payload_version', version);
    elsif forge_dispatch.idempotency_key is null then
        key := forge_idempotency_key(kind.name, kind.idempotent, wish);
    else
        key := forge_check_name(forge_dispatch.idempotency_key, 'idempotency_key');
    end if;
    if key is not null then
        -- The update changes nothing; it locks and returns the row that was there first.
        insert into forge_idempotency_keys as known (tenant_id, key, job_id)
        values (tenant, key, job_id)
        on conflict on constraint forge_idempotency_keys_unique do update set job_id = known.job_id
        returning known.job_id into known_id;
        if known_id <> job_id then
            raise notice 'deduplicated: idempotency key % stands for job % already', key, known_id;
            return known_id;
        end if;
    end if;

    insert into forge_jobs
        (id, job_type, input, priority, max_attempts, worker_capability, idempotency_key, scheduled_at,
         queue, tenant_id, category, correlation_id, payload_version, auth, expires_at, tags, meta)
    values (
        job_id, kind.name, wish,
        coalesce(forge_check_priority(forge_dispatch.priority), kind.priority),
        kind.max_attempts, kind.worker_capability, key,
        coalesce(forge_check_moment(forge_dispatch.scheduled_at, 'scheduled_at'), now())
            + coalesce(forge_dispatch.delay, '0'),
        forge_check_name(coalesce(forge_dispatch.queue, kind.queue), 'queue'),
        tenant, kind.category, correlation, version, forge_dispatch.auth,
        forge_check_moment(forge_dispatch.expires_at, 'expires_at'), forge_dispatch.tags, forge_dispatch.meta);
    if forge_dispatch.notify then
        perform pg_notify('forge_wake', '');
    end if;
    return job_id;
end
$$;
