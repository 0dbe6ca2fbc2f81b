-- Row security. A role that row security binds reads and writes the rows of the caller that its session
-- names in forge.tenant_id, and no rows where it names none. The owner of the tables is not bound. The
-- role forge_worker has a policy of its own that costs nothing (sql/roles).

create function forge_signs_callers() returns boolean
    language plpgsql stable parallel safe security definer as $$
begin
    return exists (select from forge_signing_keys);
end
$$;

-- Whether this session must name a caller, for functions that run as their owner: its login is neither
-- the owner's nor a worker's, or it has switched to the role forge_api.
create function forge_is_bound() returns boolean
    language sql stable parallel safe security definer
    return current_setting('role') = 'forge_api'
        or not (pg_has_role(session_user, current_user, 'usage')
                or coalesce(pg_has_role(session_user, to_regrole('forge_worker')::oid, 'usage'), false));

-- The caller that forge.tenant_id names: {"tenant_id": 7 or null for an operator}, with "auth" where
-- the session acts for a single caller. Null where it names none.
-- The setting is '<hmac-sha256 in hex>.<expiry, seconds since 1970>.<caller as JSON>'. Without a
-- registered key the signature is not verified, and a plain number or '*' (an operator) is valid too.
-- It is valid if it has not expired when the transaction begins, so that it never expires during a
-- mutation.
create function forge_caller() returns jsonb
    language plpgsql stable parallel safe security definer as $$
declare
    given constant text := current_setting('forge.tenant_id', true);
    is_signed boolean;
begin
    if given is null or given = '' then
        return null;
    end if;
    -- Null without a key. Both signatures are hashed once more, so that the time of the comparison does
    -- not reveal them.
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

-- The tenant that this session acts for; null for an operator and for no caller.
create function forge_current_tenant() returns bigint
    language sql stable parallel safe
    return (forge_caller() ->> 'tenant_id')::bigint;

-- Whether this session reads the rows of every tenant.
create function forge_is_operator() returns boolean
    language sql stable parallel safe
    return coalesce(forge_caller() -> 'tenant_id' = 'null', false);

-- Whether a caller can write this name as actor or reviewer: a single caller only its own.
create function forge_may_sign(caller jsonb, name text) returns boolean
    language plpgsql immutable parallel safe as $$
declare
    own constant text := coalesce(nullif(caller #>> '{auth,actor}', ''), caller #>> '{auth,name}');
begin
    if caller ? 'auth' and name is distinct from own then
        raise exception 'this connection acts for %, and cannot write in the name of %; pass its own name as actor',
            coalesce(quote_literal(own), 'a caller without a name'), coalesce(quote_literal(name), 'null')
            using errcode = 'insufficient_privilege';
    end if;
    return true;
end
$$;

-- Whether a caller can insert this job, for the policy of forge_jobs. A single caller cannot use another
-- caller's auth, requests built-in jobs in its own name, and gets no more attempts than the type has.
create function forge_may_dispatch(
    caller jsonb, tenant_id bigint, job_type text, queue text, auth jsonb, max_attempts integer
) returns boolean language plpgsql as $$
declare
    is_own constant boolean := starts_with(job_type, 'forge.');
    most integer;
begin
    if caller is null then
        raise exception 'this connection acts for no caller and cannot dispatch; call '
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
        raise exception 'queue forge is only for job types in forge.*, which cannot use another queue: got % in queue %',
            job_type, queue
            using errcode = 'insufficient_privilege';
    end if;
    most := case when is_own then 20
                 else coalesce((select kind.max_attempts from forge_job_types as kind where kind.name = job_type), 3) end;
    if max_attempts > most then
        raise exception 'a job of type % has at most % attempts, not %; run `forge migrate --app` with the code that '
            'allows more', job_type, most, max_attempts
            using errcode = 'insufficient_privilege';
    end if;
    return true;
end
$$;

-- About how many jobs have each value of some columns, from the planner's statistics. It runs as its
-- owner, because callers that row security binds cannot read statistics. It answers operators, and
-- logins that row security does not bind. Operands have the types of the operator, so that no operator
-- created later matches better.
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

-- PostgreSQL evaluates (select …) once per statement, not for each row.
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
create policy forge_tenant on forge_dead_letter_counts
    using (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()));
create policy forge_tenant on forge_audit_events
    using (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()))
    with check (
        (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()))
        and forge_may_sign((select forge_caller()), actor)
    );
create policy forge_tenant on forge_schedules
    using (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()));
-- a message belongs to the tenant of its job
create policy forge_tenant on forge_outbox
    using ((select forge_is_operator()) or exists (select from forge_jobs as job where job.id = job_id));

alter table forge_jobs enable row level security;
alter table forge_idempotency_keys enable row level security;
alter table forge_attempts enable row level security;
alter table forge_dead_letters enable row level security;
alter table forge_dead_letter_counts enable row level security;
alter table forge_audit_events enable row level security;
alter table forge_schedules enable row level security;
alter table forge_outbox enable row level security;
