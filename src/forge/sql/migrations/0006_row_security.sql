-- Tenants: a role that is bound by row security sees and writes the rows of the caller that its
-- session names in forge.tenant_id, and no rows where it names none. The owner of the tables is not
-- bound, and the role forge_worker has a policy of its own that costs it nothing (sql/roles).

-- The keys that callers are signed with, derived from [auth] secret by `forge migrate --roles`: the
-- key padded for the inner and the outer hash of HMAC. Only the owner reads it. The previous key
-- stays valid beside the current one while servers restart with a new secret.
create table forge_signing_keys (
    is_current boolean primary key,
    inner_pad bytea not null,
    outer_pad bytea not null,
    created_at timestamptz not null default now()
);

create function forge_signs_callers() returns boolean
    language plpgsql stable parallel safe security definer as $$
begin
    return exists (select from forge_signing_keys);
end
$$;

-- Whether this session has to name a caller, for functions that run as their owner: its login is
-- neither the owner's nor a worker's, or it has taken the role forge_api.
create function forge_is_bound() returns boolean
    language sql stable parallel safe security definer
    return current_setting('role') = 'forge_api'
        or not (pg_has_role(session_user, current_user, 'usage')
                or coalesce(pg_has_role(session_user, to_regrole('forge_worker')::oid, 'usage'), false));

-- The caller that forge.tenant_id names: {"tenant_id": 7 or null for an operator}, with "auth" where
-- the session speaks for one caller alone. Null where it names none.
-- The setting holds '<hmac-sha256 in hex>.<expiry, seconds since 1970>.<caller as JSON>'. Without a
-- registered key the signature is not looked at, and a plain number or '*' (an operator) counts too.
-- It expires by the start of the transaction, so that none ends under a running mutation.
create function forge_caller() returns jsonb
    language plpgsql stable parallel safe security definer as $$
declare
    given constant text := current_setting('forge.tenant_id', true);
    is_signed boolean;
begin
    if given is null or given = '' then
        return null;
    end if;
    -- Null without a key. The signatures are hashed once more, so that the time of the comparison says
    -- nothing about them.
    select bool_or(sha256(convert_to(left(given, 64), 'UTF8')) = sha256(convert_to(encode(
               sha256(outer_pad || sha256(inner_pad || convert_to(substr(given, 66), 'UTF8'))), 'hex'), 'UTF8')))
    into is_signed
    from forge_signing_keys;
    if is_signed is null then
        if given !~ '^[0-9a-f]{64}\.[0-9]{1,12}\.\{' then
            return ('{"tenant_id":' || coalesce(nullif(given, '*')::bigint::text, 'null') || '}')::jsonb;
        end if;
    elsif not is_signed then
        raise exception 'the caller in forge.tenant_id is not signed with a registered key; set [auth] secret to the '
            'secret with which `forge migrate --roles` was run, or run it with this one'
            using errcode = 'insufficient_privilege';
    elsif to_timestamp(split_part(given, '.', 2)::float8) < now() then
        raise exception 'the signed caller in forge.tenant_id expired at %; sign it again, and compare the clocks of '
            'this server and its client if it was just signed', to_timestamp(split_part(given, '.', 2)::float8)
            using errcode = 'insufficient_privilege';
    end if;
    return substr(given, 67 + length(split_part(given, '.', 2)))::jsonb;
end
$$;

-- The tenant that this session acts for; null for an operator, and where it acts for none.
create function forge_current_tenant() returns bigint
    language sql stable parallel safe
    return (forge_caller() ->> 'tenant_id')::bigint;

-- Whether this session sees the rows of every tenant.
create function forge_is_operator() returns boolean
    language sql stable parallel safe
    return coalesce(forge_caller() -> 'tenant_id' = 'null', false);

-- Whether a caller may put this name on what it writes: one who speaks for itself alone only its own.
create function forge_may_sign(caller jsonb, name text) returns boolean
    language plpgsql immutable parallel safe as $$
declare
    own constant text := coalesce(nullif(caller #>> '{auth,actor}', ''), caller #>> '{auth,name}');
begin
    if caller ? 'auth' and name is distinct from own then
        raise exception 'this connection acts for %, and cannot write in the name of %; pass its own name as actor',
            coalesce(quote_literal(own), 'a caller without a name'), coalesce(quote_literal(name), 'nobody')
            using errcode = 'insufficient_privilege';
    end if;
    return true;
end
$$;

-- Whether a caller may insert this job, for the policy of forge_jobs. One who speaks for itself alone
-- does not write another's auth, asks for Forge's own jobs in its own name, and for no more attempts
-- than the type has.
create function forge_may_dispatch(
    caller jsonb, tenant_id bigint, job_type text, queue text, auth jsonb, max_attempts integer
) returns boolean language plpgsql as $$
declare
    is_own constant boolean := starts_with(job_type, 'forge.');
    most integer;
begin
    if caller is null then
        raise exception 'this connection acts for no caller, so that it cannot dispatch; call '
            '`await app.act_for(conn)` or app.act_for(conn, tenant_id=…) first in its transaction'
            using errcode = 'insufficient_privilege';
    elsif (caller -> 'tenant_id' = 'null' or tenant_id = (caller ->> 'tenant_id')::bigint) is not true then
        return false;
    elsif not caller ? 'auth' then
        return true;
    elsif auth is distinct from nullif(caller -> 'auth', 'null') and (is_own or auth is not null) then
        raise exception 'a job of type % cannot carry the auth of another caller; leave auth out', job_type
            using errcode = 'insufficient_privilege';
    elsif is_own <> (queue = 'forge') then
        raise exception 'queue forge is for job types in forge.* and these for no other, not % in queue %',
            job_type, queue
            using errcode = 'insufficient_privilege';
    end if;
    most := case when is_own then 20
                 else coalesce((select kind.max_attempts from forge_job_types as kind where kind.name = job_type), 3) end;
    if max_attempts > most then
        raise exception 'a job of type % has at most % attempts, not %; run `forge migrate --app` with the code that '
            'says more', job_type, most, max_attempts
            using errcode = 'insufficient_privilege';
    end if;
    return true;
end
$$;

-- (select …) is evaluated once per statement, and not for each row.
create policy forge_tenant on forge_jobs
    using (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()))
    with check (forge_may_dispatch((select forge_caller()), tenant_id, job_type, queue, auth, max_attempts));
create policy forge_tenant on forge_idempotency_keys
    using (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()));
create policy forge_tenant on forge_attempts
    using (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()));
create policy forge_tenant on forge_dead_letters
    using (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()))
    with check (
        (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()))
        and (reviewed_by is null or forge_may_sign((select forge_caller()), reviewed_by))
    );
create policy forge_tenant on forge_audit_events
    using (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()))
    with check (
        (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()))
        and forge_may_sign((select forge_caller()), actor)
    );
create policy forge_tenant on forge_schedules
    using (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()));
-- a message is whose its job is
create policy forge_tenant on forge_outbox
    using ((select forge_is_operator()) or exists (select from forge_jobs as job where job.id = job_id));

alter table forge_jobs enable row level security;
alter table forge_idempotency_keys enable row level security;
alter table forge_attempts enable row level security;
alter table forge_dead_letters enable row level security;
alter table forge_audit_events enable row level security;
alter table forge_schedules enable row level security;
alter table forge_outbox enable row level security;

-- Workers that run by now go on as they did.
do $$
declare
    name text;
begin
    if exists (select from pg_roles where rolname = 'forge_worker') then
        foreach name in array array['forge_jobs', 'forge_idempotency_keys', 'forge_attempts', 'forge_dead_letters',
                                    'forge_audit_events', 'forge_schedules', 'forge_outbox'] loop
            execute format('create policy forge_worker on %I to forge_worker using (true)', name);
        end loop;
    end if;
end
$$;
