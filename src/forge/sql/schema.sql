-- Generated from sql/migrations by `make format`: the whole schema, in reading order rather than
-- in the order that would create it. tables.sql has the tables alone.

CREATE TABLE public.forge_jobs (
    id uuid DEFAULT public.forge_uuidv7() NOT NULL,
    lease bigint DEFAULT 0 NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    status character varying(32) DEFAULT 'pending'::character varying NOT NULL,
    worker_id uuid,
    attempts integer DEFAULT 0 NOT NULL,
    max_attempts integer DEFAULT 3 NOT NULL,
    priority integer DEFAULT 50 NOT NULL,
    crashes integer DEFAULT 0 NOT NULL,
    scheduled_at timestamp with time zone DEFAULT now() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    lone_crashes integer DEFAULT 0 NOT NULL,
    progress_percent integer DEFAULT 0,
    suspect boolean DEFAULT false NOT NULL,
    job_type character varying(255) NOT NULL,
    queue character varying(255) DEFAULT 'default'::character varying NOT NULL,
    worker_capability character varying(255),
    input jsonb DEFAULT '{}'::jsonb NOT NULL,
    output jsonb,
    progress_message text,
    last_error text,
    error_class character varying(32),
    idempotency_key character varying(255),
    claimed_at timestamp with time zone,
    started_at timestamp with time zone,
    completed_at timestamp with time zone,
    failed_at timestamp with time zone,
    cancelled_at timestamp with time zone,
    last_heartbeat timestamp with time zone,
    expires_at timestamp with time zone,
    timeout interval,
    tenant_id bigint,
    category character varying(32),
    correlation_id uuid,
    payload_version character varying(32) DEFAULT '1.0'::character varying NOT NULL,
    auth jsonb,
    traceparent character varying(255),
    retry_of uuid,
    parent_id uuid,
    tags text[],
    meta jsonb,
    checkpoint jsonb,
    original_scheduled_at timestamp with time zone
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_analyze_scale_factor='0.05', autovacuum_vacuum_cost_delay='0');

CREATE TABLE public.forge_attempts (
    job_id uuid NOT NULL,
    lease bigint NOT NULL,
    attempt integer NOT NULL,
    tenant_id bigint,
    worker_id uuid,
    outcome character varying(32) NOT NULL,
    error_class character varying(32),
    exception text,
    error text,
    trace text,
    started_at timestamp with time zone,
    ended_at timestamp with time zone DEFAULT now() NOT NULL,
    claimed_at timestamp with time zone,
    retry_at timestamp with time zone
);

CREATE TABLE public.forge_attempt_logs (
    job_id uuid NOT NULL,
    lease bigint NOT NULL,
    kind character varying(16) NOT NULL,
    slot integer NOT NULL,
    number bigint NOT NULL,
    tenant_id bigint,
    at timestamp with time zone NOT NULL,
    level character varying(8),
    message text,
    fields jsonb,
    percent integer,
    CONSTRAINT forge_attempt_logs_kind CHECK (((kind)::text = ANY ((ARRAY['log'::character varying, 'progress'::character varying, 'snoozed'::character varying])::text[])))
)
WITH (fillfactor='90', autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='1000');

CREATE TABLE public.forge_idempotency_keys (
    tenant_id bigint,
    key character varying(255) NOT NULL,
    job_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.forge_dead_letters (
    dlq_id bigint DEFAULT public.forge_new_number() NOT NULL,
    job_id uuid NOT NULL,
    job_type character varying(255) NOT NULL,
    category character varying(32),
    queue character varying(255) NOT NULL,
    priority integer NOT NULL,
    tenant_id bigint,
    correlation_id uuid,
    idempotency_key character varying(255),
    payload jsonb NOT NULL,
    payload_version character varying(32) NOT NULL,
    error_class character varying(32),
    exception text,
    error_message text,
    fingerprint text,
    attempt_count integer NOT NULL,
    crashes integer DEFAULT 0 NOT NULL,
    attempts jsonb DEFAULT '[]'::jsonb NOT NULL,
    original_created_at timestamp with time zone NOT NULL,
    original_scheduled_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    status character varying(32) DEFAULT 'pending_review'::character varying NOT NULL,
    reviewed_at timestamp with time zone,
    reviewed_by text,
    notes text,
    new_job_id uuid,
    edited_payload jsonb,
    request_id uuid,
    place text,
    CONSTRAINT forge_dead_letters_status CHECK (((status)::text = ANY ((ARRAY['pending_review'::character varying, 'reprocessed'::character varying, 'discarded'::character varying])::text[])))
);

CREATE TABLE public.forge_dead_letter_counts (
    tenant_id bigint,
    status character varying(32) NOT NULL,
    job_type character varying(255) NOT NULL,
    category character varying(32),
    error_class character varying(32),
    exception text,
    place text,
    fingerprint text NOT NULL,
    letters bigint NOT NULL,
    first_seen timestamp with time zone,
    last_seen timestamp with time zone,
    sample bigint
)
WITH (autovacuum_vacuum_scale_factor='0.1', autovacuum_vacuum_threshold='1000');

CREATE TABLE public.forge_schedules (
    id uuid DEFAULT public.forge_uuidv7() NOT NULL,
    type character varying(255) NOT NULL,
    key character varying(255) DEFAULT ''::character varying NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    next_run_at timestamp with time zone,
    running_since timestamp with time zone,
    last_run_at timestamp with time zone,
    last_error text,
    consecutive_failures integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    lease bigint DEFAULT 0 NOT NULL,
    worker_id uuid,
    last_heartbeat timestamp with time zone,
    every interval,
    cron text,
    tz text DEFAULT 'UTC'::text NOT NULL,
    missed character varying(8) DEFAULT 'once'::character varying NOT NULL,
    jitter interval,
    priority integer DEFAULT 50 NOT NULL,
    worker_capability character varying(255),
    timeout interval,
    tenant_id bigint,
    recent_runs jsonb DEFAULT '[]'::jsonb NOT NULL,
    tick_at timestamp with time zone,
    crashes integer DEFAULT 0 NOT NULL,
    suspect boolean DEFAULT false NOT NULL,
    checkpoint jsonb,
    edited text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT forge_schedules_every CHECK ((every > '00:00:00'::interval)),
    CONSTRAINT forge_schedules_missed CHECK (((missed)::text = ANY ((ARRAY['once'::character varying, 'skip'::character varying, 'all'::character varying])::text[]))),
    CONSTRAINT forge_schedules_priority CHECK ((priority = ANY (ARRAY[0, 25, 50, 75, 100]))),
    CONSTRAINT forge_schedules_rule CHECK (((every IS NULL) OR (cron IS NULL)))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

CREATE TABLE public.forge_statistics (
    minute timestamp with time zone NOT NULL,
    job_type character varying(255) NOT NULL,
    queue character varying(255) NOT NULL,
    writer uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    completed bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    retried bigint DEFAULT 0 NOT NULL,
    crashed bigint DEFAULT 0 NOT NULL,
    cancelled bigint DEFAULT 0 NOT NULL,
    released bigint DEFAULT 0 NOT NULL,
    snoozed bigint DEFAULT 0 NOT NULL,
    reprocessed bigint DEFAULT 0 NOT NULL,
    wait_buckets smallint[] DEFAULT '{}'::smallint[] NOT NULL,
    wait_counts bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    run_buckets smallint[] DEFAULT '{}'::smallint[] NOT NULL,
    run_counts bigint[] DEFAULT '{}'::bigint[] NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.05');

CREATE TABLE public.forge_tenant_statistics (
    minute timestamp with time zone NOT NULL,
    tenant_id bigint NOT NULL,
    writer uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    completed bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    retried bigint DEFAULT 0 NOT NULL,
    crashed bigint DEFAULT 0 NOT NULL,
    cancelled bigint DEFAULT 0 NOT NULL,
    released bigint DEFAULT 0 NOT NULL,
    snoozed bigint DEFAULT 0 NOT NULL,
    reprocessed bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.05');

CREATE TABLE public.forge_workers (
    id uuid NOT NULL,
    incarnation uuid NOT NULL,
    hostname text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    capabilities text[] DEFAULT '{}'::text[] NOT NULL,
    queues text[],
    job_types text[] DEFAULT '{}'::text[] NOT NULL,
    max_concurrent integer NOT NULL,
    running integer DEFAULT 0 NOT NULL,
    draining boolean DEFAULT false NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    last_heartbeat timestamp with time zone DEFAULT now() NOT NULL,
    schedule_types text[] DEFAULT '{}'::text[] NOT NULL,
    drained_at timestamp with time zone,
    drained_by text,
    drain_reason text
)
WITH (fillfactor='50');

CREATE TABLE public.forge_job_types (
    name character varying(255) NOT NULL,
    queue character varying(255) DEFAULT 'default'::character varying NOT NULL,
    priority integer DEFAULT 50 NOT NULL,
    max_attempts integer DEFAULT 3 NOT NULL,
    timeout interval DEFAULT '01:00:00'::interval NOT NULL,
    worker_capability character varying(255),
    category character varying(32),
    requires text[],
    idempotent text,
    dead_letter boolean DEFAULT true NOT NULL,
    isolation character varying(32) DEFAULT 'none'::character varying NOT NULL,
    retry jsonb,
    input_schema jsonb,
    output_schema jsonb,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    allow_sensitive text[] DEFAULT '{}'::text[] NOT NULL,
    description text
);

CREATE TABLE public.forge_schedule_types (
    name character varying(255) NOT NULL,
    priority integer DEFAULT 50 NOT NULL,
    worker_capability character varying(255),
    input_schema jsonb,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.forge_pauses (
    id uuid DEFAULT public.forge_uuidv7() NOT NULL,
    type character varying(255),
    queue character varying(255),
    until timestamp with time zone,
    reason text NOT NULL,
    actor text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT forge_pauses_builtin CHECK (((NOT starts_with((type)::text, 'forge.'::text)) AND ((queue)::text <> 'forge'::text))),
    CONSTRAINT forge_pauses_target CHECK (((type IS NOT NULL) OR (queue IS NOT NULL)))
);

CREATE TABLE public.forge_outbox (
    id bigint NOT NULL,
    job_id uuid NOT NULL,
    send_at timestamp with time zone DEFAULT now() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    sends integer DEFAULT 0 NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_cost_delay='0');

CREATE TABLE public.forge_audit_events (
    id bigint DEFAULT public.forge_new_number() NOT NULL,
    event character varying(64) NOT NULL,
    actor text,
    tenant_id bigint,
    job_id uuid,
    dlq_id bigint,
    schedule_id uuid,
    notes text,
    detail jsonb,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.forge_signing_keys (
    is_current boolean NOT NULL,
    inner_pad bytea NOT NULL,
    outer_pad bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.forge_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE SEQUENCE public.forge_numbers
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER TABLE public.forge_outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.forge_outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE ONLY public.forge_attempt_logs
    ADD CONSTRAINT forge_attempt_logs_pkey PRIMARY KEY (job_id, lease, kind, slot);

ALTER TABLE ONLY public.forge_attempts
    ADD CONSTRAINT forge_attempts_pkey PRIMARY KEY (job_id, lease);

ALTER TABLE ONLY public.forge_audit_events
    ADD CONSTRAINT forge_audit_events_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.forge_dead_letters
    ADD CONSTRAINT forge_dead_letters_job_id_key UNIQUE (job_id);

ALTER TABLE ONLY public.forge_dead_letters
    ADD CONSTRAINT forge_dead_letters_pkey PRIMARY KEY (dlq_id);

ALTER TABLE ONLY public.forge_idempotency_keys
    ADD CONSTRAINT forge_idempotency_keys_unique UNIQUE NULLS NOT DISTINCT (tenant_id, key);

ALTER TABLE ONLY public.forge_job_types
    ADD CONSTRAINT forge_job_types_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.forge_jobs
    ADD CONSTRAINT forge_jobs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.forge_migrations
    ADD CONSTRAINT forge_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.forge_outbox
    ADD CONSTRAINT forge_outbox_once UNIQUE (job_id);

ALTER TABLE ONLY public.forge_outbox
    ADD CONSTRAINT forge_outbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.forge_pauses
    ADD CONSTRAINT forge_pauses_once UNIQUE NULLS NOT DISTINCT (type, queue);

ALTER TABLE ONLY public.forge_pauses
    ADD CONSTRAINT forge_pauses_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.forge_schedule_types
    ADD CONSTRAINT forge_schedule_types_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.forge_schedules
    ADD CONSTRAINT forge_schedules_once UNIQUE NULLS NOT DISTINCT (tenant_id, type, key);

ALTER TABLE ONLY public.forge_schedules
    ADD CONSTRAINT forge_schedules_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.forge_signing_keys
    ADD CONSTRAINT forge_signing_keys_pkey PRIMARY KEY (is_current);

ALTER TABLE ONLY public.forge_statistics
    ADD CONSTRAINT forge_statistics_pkey PRIMARY KEY (minute, job_type, queue, writer);

ALTER TABLE ONLY public.forge_tenant_statistics
    ADD CONSTRAINT forge_tenant_statistics_pkey PRIMARY KEY (tenant_id, minute, writer);

ALTER TABLE ONLY public.forge_workers
    ADD CONSTRAINT forge_workers_pkey PRIMARY KEY (id);

CREATE INDEX forge_audit_events_job ON public.forge_audit_events USING btree (job_id, id) WHERE (job_id IS NOT NULL);

CREATE INDEX forge_audit_events_letter ON public.forge_audit_events USING btree (dlq_id, id) WHERE (dlq_id IS NOT NULL);

CREATE INDEX forge_audit_events_schedule ON public.forge_audit_events USING btree (schedule_id, id) WHERE (schedule_id IS NOT NULL);

CREATE INDEX forge_audit_events_tenant ON public.forge_audit_events USING btree (tenant_id, id) WHERE (tenant_id IS NOT NULL);

CREATE INDEX forge_dead_letters_group ON public.forge_dead_letters USING btree (fingerprint, status, dlq_id);

CREATE INDEX forge_dead_letters_listed ON public.forge_dead_letters USING btree (status, dlq_id);

CREATE INDEX forge_dead_letters_reviewed ON public.forge_dead_letters USING btree (reviewed_at) WHERE ((status)::text <> 'pending_review'::text);

CREATE INDEX forge_dead_letters_tenant ON public.forge_dead_letters USING btree (tenant_id, status, dlq_id) WHERE (tenant_id IS NOT NULL);

CREATE INDEX forge_dead_letters_tenant_group ON public.forge_dead_letters USING btree (tenant_id, fingerprint, status, dlq_id) WHERE (tenant_id IS NOT NULL);

CREATE INDEX forge_idempotency_keys_created ON public.forge_idempotency_keys USING btree (created_at);

CREATE INDEX forge_jobs_correlation ON public.forge_jobs USING btree (correlation_id, id) WHERE (correlation_id IS NOT NULL);

CREATE INDEX forge_jobs_ended ON public.forge_jobs USING btree (status, id) WHERE ((status)::text = ANY ((ARRAY['failed'::character varying, 'dead_letter'::character varying, 'cancelled'::character varying])::text[]));

CREATE INDEX forge_jobs_key ON public.forge_jobs USING btree (idempotency_key, id) WHERE (idempotency_key IS NOT NULL);

CREATE INDEX forge_jobs_original ON public.forge_jobs USING btree (retry_of, id) WHERE (retry_of IS NOT NULL);

CREATE INDEX forge_jobs_owned ON public.forge_jobs USING btree (worker_id) WHERE ((status)::text = ANY ((ARRAY['claimed'::character varying, 'running'::character varying])::text[]));

CREATE INDEX forge_jobs_parent ON public.forge_jobs USING btree (parent_id, id) WHERE (parent_id IS NOT NULL);

CREATE INDEX forge_jobs_ready ON public.forge_jobs USING btree (public.forge_lane((job_type)::text, (queue)::text, (worker_capability)::text, priority), scheduled_at, id) WHERE ((status)::text = ANY ((ARRAY['pending'::character varying, 'retry'::character varying])::text[]));

CREATE INDEX forge_jobs_tenant ON public.forge_jobs USING btree (tenant_id, id) WHERE (tenant_id IS NOT NULL);

CREATE INDEX forge_outbox_due ON public.forge_outbox USING btree (send_at);

CREATE INDEX forge_schedules_due ON public.forge_schedules USING btree (public.forge_lane((type)::text, ''::text, (worker_capability)::text, priority), next_run_at, id) WHERE (enabled AND (running_since IS NULL) AND (next_run_at IS NOT NULL));

CREATE INDEX forge_schedules_failing ON public.forge_schedules USING btree (consecutive_failures DESC) WHERE (enabled AND (consecutive_failures > 0));

CREATE INDEX forge_schedules_owned ON public.forge_schedules USING btree (worker_id) WHERE (running_since IS NOT NULL);

CREATE INDEX forge_tenant_statistics_minute ON public.forge_tenant_statistics USING btree (minute);

CREATE FUNCTION public.forge_add_to_outbox() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.forge_agreed(what text, inside jsonb, outside text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $_$
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
            using errcode = 'invalid_parameter_value', hint = format('pass %s =>, or put it into the payload', what);
    end if;
    return coalesce(said, outside);
end
$_$;

CREATE FUNCTION public.forge_begin_job() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.forge_caller() RETURNS jsonb
    LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.forge_check_json(value jsonb, what text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
declare
    written constant text := value::text;
    bare text;
    nested text;
begin
    if octet_length(written) > 262144 then
        raise exception '% is % bytes of JSON, the limit is 262144', what, octet_length(written)
            using errcode = 'program_limit_exceeded', hint = 'store the content elsewhere and pass a reference to it';
    elsif length(written) < 130 then
        return;  -- too short for 65 levels or 309 digits
    end if;
    bare := regexp_replace(written, '"(\\.|[^"\\])*"', '', 'g');
    nested := translate(regexp_replace(bare, '[^][{}]', '', 'g'), '{}', '[]');
    for _ in 1..64 loop
        exit when nested = '';
        nested := replace(nested, '[]', '');  -- removes the innermost level
    end loop;
    if nested <> '' then
        raise exception '% is nested deeper than 64 levels', what
            using errcode = 'program_limit_exceeded', hint = 'flatten it';
    elsif exists (select from regexp_matches(bare, '([0-9]+)(\.[0-9]+)?', 'g') as number
                  where length(number[1]) > case when number[2] is null then 4300 else 308 end) then
        raise exception '% contains a number with too many digits', what
            using errcode = 'numeric_value_out_of_range',
                  hint = 'pass it as text; a whole number may have 4300 digits, one with a fraction 308 before the point';
    end if;
end
$$;

CREATE FUNCTION public.forge_check_moment(value timestamp with time zone, what text) RETURNS timestamp with time zone
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
begin
    if value not between '1970-01-01 00:00:00+00' and '9000-12-31 23:59:59+00' then
        raise exception '% % is not a time to run at', what, value
            using errcode = 'invalid_parameter_value', hint = 'use a time between the years 1970 and 9000';
    end if;
    return value;
end
$$;

CREATE FUNCTION public.forge_check_name(value text, what text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
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

CREATE FUNCTION public.forge_check_priority(value text) RETURNS integer
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
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
        raise exception 'unknown priority %', quote_literal(value)
            using errcode = 'invalid_parameter_value',
                  hint = 'use critical (100), high (75), normal (50), low (25) or background (0)';
    end if;
    return found;
end
$$;

CREATE FUNCTION public.forge_check_references(kind public.forge_job_types, payload jsonb) RETURNS void
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $_$
declare
    envelope constant text[] := case when kind.category is null then '{}'
                                     else array['tenant_id', 'correlation_id', 'idempotency_key'] end;
    names constant text[] := case when kind.requires is null then forge_references(kind.category)
                                  else array(select name from unnest(kind.requires) as name
                                             where name <> all (envelope)) end;
    missing text;
begin
    if coalesce(names, '{}') = '{}' then
        return;
    elsif jsonb_typeof(payload) <> 'object' then
        raise exception 'the payload of % must be an object with %', kind.name, array_to_string(names, ', ')
            using errcode = 'invalid_parameter_value';
    elsif kind.requires is not null then
        select name into missing from unnest(names) as name where not forge_has(payload, name) limit 1;
        if missing is not null then
            raise exception '$.% is required for a % job', missing, coalesce(kind.category, kind.name)
                using errcode = 'invalid_parameter_value', hint = 'pass the id of what is meant';
        end if;
    elsif not exists (select from jsonb_object_keys(payload) as name
                      where (name = any (names) or name like '%\_id' and name <> all (envelope))
                            and forge_has(payload, name)) then
        raise exception '$ has no reference; % jobs carry %, or another field that ends in _id', kind.category,
                        array_to_string(names, ' or ')
            using errcode = 'invalid_parameter_value', hint = 'declare requires=[…] for other fields';
    end if;
end
$_$;

CREATE FUNCTION public.forge_check_sensitive(payload jsonb, allowed text[]) RETURNS void
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $_$
declare
    names constant text[] := array(
        select array_to_string(forge_words(entry), '') from unnest(allowed) as entry where not starts_with(entry, '$'));
    found record;
begin
    with recursive parts (path, any_path, name, name_shape, alias, value, place) as (
        select '$', '$', null::text, null::text, null::text, payload, 0
        union all
        select parts.path || step.path, parts.any_path || step.any_path, step.name, step.name_shape, step.alias,
               step.value, step.place
        from parts
             cross join lateral (
                select shown as path, shown as any_path, key as name, name_shape,
                       -- {"name": "Authorization", "value": "…"}: headers or form fields as a list of pairs
                       case when key = 'value' and jsonb_typeof(named) = 'string' then named #>> '{}' end as alias,
                       held as value, place
                from jsonb_each(case jsonb_typeof(parts.value) when 'object' then parts.value end)
                         as entry (key, held)
                     cross join coalesce(parts.value -> 'name', parts.value -> 'key', parts.value -> 'header') as named
                     cross join forge_looks_like(key) as name_shape
                     cross join lateral (
                        select case when key = 'value' and jsonb_typeof(named) = 'string' then named #>> '{}'
                                    else key end as meant) as said
                     cross join lateral (
                        select case when parts.place >= 10 or forge_may_be_secret(meant)
                                    then forge_content_place(meant, parts.place / 10, parts.value ?| '{subject,Subject}')
                                    else 0 end as place) as standing
                     cross join lateral (
                        select case
                            when name_shape is not null then '["…"]'
                            when length(key) <= 60 and key ~ '^[A-Za-z_][A-Za-z0-9_]*$' then '.' || key
                            else format('[%s]', to_json(left(key, 60))) end as shown) as finding
                union all
                select format('[%s]', index - 1), '[*]', null, null, null, item, parts.place
                from jsonb_array_elements(case jsonb_typeof(parts.value) when 'array' then parts.value end)
                         with ordinality as items (item, index)
                where jsonb_typeof(item) in ('string', 'array', 'object') or length(item #>> '{}') >= 13
             ) as step
        where (parts.path || step.path <> all (allowed) and parts.any_path || step.any_path <> all (allowed)
               or allowed = '{}')
          and (step.name is null or names = '{}' or array_to_string(forge_words(step.name), '') <> all (names))
    )
    select parts.path, finding.what into found
    from parts
         cross join lateral (
            select coalesce(
                'has a name that looks like ' || name_shape,
                case when forge_may_be_secret(coalesce(alias, name)) and forge_is_secret(coalesce(alias, name), value)
                     then 'has the name of a secret' end,
                case when place % 10 > 0 and jsonb_typeof(value) = 'string' and forge_is_content(value #>> '{}', place % 10)
                     then case when name is null then 'is part' else 'has the name' end
                          || ' of an embedded body or document' end,
                case when jsonb_typeof(value) = 'string' then 'looks like ' || forge_looks_like(value #>> '{}')
                     when jsonb_typeof(value) = 'number' and length(value #>> '{}') >= 13 and forge_is_card(value #>> '{}')
                          and forge_is_reference(name) is not true then 'looks like a card number' end) as what) as finding
    where finding.what is not null
    limit 1;
    if found.path is not null then
        raise exception '% %', found.path, found.what
            using errcode = 'invalid_parameter_value',
                  hint = 'store it elsewhere and pass a reference, or allow it with allow_sensitive';
    end if;
end
$_$;

CREATE FUNCTION public.forge_content_place(name text, inside integer, beside_subject boolean) RETURNS integer
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
declare
    words text[] := forge_words(name);
    last text := words[cardinality(words)];
    before text := words[cardinality(words) - 1];
    bodies constant text[] := '{body,content,contents}';
    documents constant text[] := '{document,documents,attachment,attachments,letter,letters,transcript,transcripts}';
    mails constant text[] := '{email,emails,mail,mails,message,messages}';
    is_kind boolean;
    own integer;
begin
    if last = '64' and before = 'base' then
        last := 'base64';
        before := words[cardinality(words) - 2];
    elsif last is null or forge_refers(last) then
        return 0;
    end if;
    is_kind := last in ('html', 'text', 'plain', 'raw', 'base64', 'bytes', 'markdown', 'data');
    own := case
        when beside_subject and cardinality(words) = 1
             and last in ('text', 'html', 'plain', 'markdown', 'message', 'raw') then 3
        when last = any (bodies) or is_kind and before = any (bodies) then 4
        when is_kind and before = any (documents || mails || '{file,files,doc,docs}') then 3
        when before in ('full', 'plain', 'raw', 'mime', 'html') and (last = 'text' or last = any (mails))
             or last = any (documents) or last in ('html', 'markdown') or last = 'mime' and before = any (bodies) then 2
        when last = 'text' or last = any (mails) then 1
        else 0 end;
    return greatest(own, case when inside > 0 and is_kind then 3 when inside = 2 then 2 else 0 end)
           + 10 * case when own = 4 or inside = 2 then 2 when own > 0 then 1 else inside end;
end
$$;

CREATE FUNCTION public.forge_count_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    update forge_jobs set version = version + 1 where id = new.id;
    return null;
end
$$;

CREATE FUNCTION public.forge_count_dead_letters() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.forge_current_tenant() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN ((public.forge_caller() ->> 'tenant_id'::text))::bigint;

CREATE FUNCTION public.forge_demand(queue text DEFAULT NULL::text, ahead interval DEFAULT '00:01:00'::interval, with_schedules boolean DEFAULT true) RETURNS TABLE(ready bigint, running bigint, soon bigint, oldest_seconds double precision, slots bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
with recursive lanes as (
    (select forge_lane(job_type, queue, worker_capability, priority) as lane, job.job_type, job.queue, job.scheduled_at
     from forge_jobs as job
     where status in ('pending', 'retry')
     order by forge_lane(job_type, queue, worker_capability, priority), scheduled_at, id
     limit 1)
    union all
    select next.*
    from lanes
    cross join lateral (
        select forge_lane(job_type, queue, worker_capability, priority) as lane, job.job_type, job.queue, job.scheduled_at
        from forge_jobs as job
        where status in ('pending', 'retry')
          and forge_lane(job_type, queue, worker_capability, priority) > lanes.lane
        order by forge_lane(job_type, queue, worker_capability, priority), scheduled_at, id
        limit 1) as next
), pauses as (
    select type, queue from forge_pauses where coalesce(until > now() + $2, true)
), waiting as (
    select coalesce(sum(due.count), 0)::bigint as ready,
           count(*) filter (where scheduled_at > now()) as soon,
           coalesce(extract(epoch from now() - min(scheduled_at) filter (where scheduled_at <= now())), 0)::float8
               as oldest_seconds
    from lanes
    cross join lateral (
        select count(*) as count
        from (select
              from forge_jobs
              where status in ('pending', 'retry')
                and forge_lane(job_type, queue, worker_capability, priority) = lanes.lane
                and scheduled_at <= now()
              order by scheduled_at, id
              limit 10000) as counted) as due
    where ($1 is null or lanes.queue = $1) and scheduled_at <= now() + $2
      and not exists (select from pauses
                      where coalesce(pauses.type = lanes.job_type, true)
                        and coalesce(pauses.queue = lanes.queue, true))
), owned as (
    select count(*) as running
    from forge_jobs as job
    where status in ('claimed', 'running') and ($1 is null or job.queue = $1)
), schedules as (
    select count(*) filter (where next_run_at <= now()) as ready,
           count(*) filter (where next_run_at > now()) as soon
    from (select next_run_at
          from forge_schedules
          where $3 and enabled and running_since is null and next_run_at <= now() + $2
            and not exists (select from pauses
                            where pauses.type = forge_schedules.type and pauses.queue is null)
          limit 10000) as due
), held as (
    select count(*) as running from forge_schedules where $3 and running_since is not null
)
select waiting.ready + schedules.ready, owned.running + held.running, waiting.soon + schedules.soon,
       waiting.oldest_seconds,
       greatest(waiting.ready + schedules.ready + owned.running + held.running,
                least(waiting.soon + schedules.soon, 1))
from waiting, owned, schedules, held
$_$;

CREATE FUNCTION public.forge_dispatch(job_type text, input jsonb DEFAULT '{}'::jsonb, priority text DEFAULT NULL::text, scheduled_at timestamp with time zone DEFAULT NULL::timestamp with time zone, delay interval DEFAULT NULL::interval, idempotency_key text DEFAULT NULL::text, tenant_id bigint DEFAULT NULL::bigint, correlation_id uuid DEFAULT NULL::uuid, payload_version text DEFAULT NULL::text, queue text DEFAULT NULL::text, tags text[] DEFAULT NULL::text[], expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, auth jsonb DEFAULT NULL::jsonb, meta jsonb DEFAULT NULL::jsonb, notify boolean DEFAULT false) RETURNS uuid
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
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
$_$;

CREATE FUNCTION public.forge_forbids_move(was text, becomes text, growth bigint, owner uuid, lease bigint) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
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

CREATE FUNCTION public.forge_has(payload jsonb, name text) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN COALESCE(CASE jsonb_typeof((payload -> name)) WHEN 'string'::text THEN (btrim((payload ->> name), ' 	
'::text) <> ''::text) ELSE ((payload -> name) <> ALL (ARRAY['null'::jsonb, '[]'::jsonb, '{}'::jsonb])) END, false);

CREATE FUNCTION public.forge_idempotency_key(job_type text, idempotent text, input jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
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

CREATE FUNCTION public.forge_is_bound() RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    RETURN ((current_setting('role'::text) = 'forge_api'::text) OR (NOT (pg_has_role(SESSION_USER, CURRENT_USER, 'usage'::text) OR COALESCE(pg_has_role(SESSION_USER, (to_regrole('forge_worker'::text))::oid, 'usage'::text), false))));

CREATE FUNCTION public.forge_is_card(digits text) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN (digits ~ '^(4(\d{12}|\d{15}|\d{18})|(5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}|3(0[0-5]|[68]\d)\d{11}|(6011|65\d\d|64[4-9]\d)\d{12,15}|35(2[89]|[3-8]\d)\d{12,15}|62\d{14,17})$'::text) THEN (SELECT ((sum(((((sign.digit)::integer * (2 - (sign.place % (2)::bigint))) / 10) + (((sign.digit)::integer * (2 - (sign.place % (2)::bigint))) % (10)::bigint))) % (10)::numeric) = (0)::numeric) FROM regexp_split_to_table(reverse(forge_is_card.digits), ''::text) WITH ORDINALITY sign(digit, place)) ELSE false END;

CREATE FUNCTION public.forge_is_content(value text, level integer) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $_$
declare
    said constant text := btrim(left(value, 1000), E' \t\r\n');
begin
    if level = 0 or said = '' then
        return false;
    elsif level = 4 then
        return true;
    elsif level = 1 then
        return said ~* '^(dear|hi|hello|hey|good (morning|day|afternoon|evening))[ \t][^\r\n,.!?;:]{1,40}[,!][ \t\r\n]|\n[ \t\r]*\n'
            or length(said) > 500 and said ~ '[ \t\r\n]';
    elsif level = 2 and length(said) <= 120 and said !~ '[ \t\r\n]|<[A-Za-z!/?]|[^\u0001-\u007f]{12}' then
        return false;
    end if;
    -- a URL, a media type, a file name, an address, or a label with a number
    return said !~* '^([a-z][a-z0-9+.-]*://[^ \t\r\n<>]+|[a-z]+/[a-z0-9.+-]+(; ?[a-z]+=[^ \t\r\n]+)?|[^\r\n<>]+\.(pdf|docx?|xlsx?|pptx?|txt|csv|html?|md|rtf|od[tsp]|png|jpe?g|gif|tiff?|zip|eml|msg|xml|json)|[^\r\n<>@]*<[^ \t\r\n<>@]+@[^ \t\r\n<>@]+>|[a-z]+[ #.-]{1,3}(no\.? ?)?[0-9][a-z0-9./-]*)$';
end
$_$;

CREATE FUNCTION public.forge_is_operator() RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN COALESCE(((public.forge_caller() -> 'tenant_id'::text) = 'null'::jsonb), false);

CREATE FUNCTION public.forge_refers(word text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (word = ANY (ARRAY['id'::text, 'ids'::text, 'ref'::text, 'refs'::text, 'reference'::text, 'uuid'::text, 'name'::text, 'type'::text, 'kind'::text, 'version'::text, 'count'::text, 'counts'::text, 'limit'::text, 'size'::text, 'length'::text, 'usage'::text, 'ttl'::text, 'at'::text, 'on'::text, 'until'::text, 'expiry'::text, 'expires'::text, 'status'::text, 'policy'::text, 'hint'::text, 'url'::text, 'uri'::text, 'path'::text]));

CREATE FUNCTION public.forge_words(name text) RETURNS text[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ARRAY(SELECT lower(word.word[1]) AS lower FROM regexp_matches(regexp_replace(NORMALIZE("left"(forge_words.name, 200), NFKC), '[\u00ad\u200b-\u200f\u2060\ufeff]'::text, ''::text, 'g'::text), '[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\u0001-\u007f]+|\d+'::text, 'g'::text) word(word));

CREATE FUNCTION public.forge_is_reference(name text) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (SELECT public.forge_refers(words.words[cardinality(words.words)]) AS forge_refers FROM public.forge_words(forge_is_reference.name) words(words));

CREATE FUNCTION public.forge_is_secret(name text, value jsonb) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $_$
declare
    words constant text[] := forge_words(name);
    joined constant text := replace(array_to_string(words, ''), 'secretar', '');
begin
    return (joined ~ 'password|passwd|passphrase|passcode|secret|apikey|authorization|credential|privatekey|accesskey|encryptionkey|signingkey|creditcard|cardnum|socialsecurity|bankaccount|passportnumber|setcookie|tokens?$'
            or words && '{token,tokens,pwd,jwt,bearer,cookie,cookies,ssn,cvv,cvc,pin,otp,iban}')
        and not forge_refers(words[cardinality(words)])
        and jsonb_typeof(value) not in ('null', 'boolean') and value not in ('""', '[]', '{}')
        and not (jsonb_typeof(value) = 'number'
                 and (words[1] in ('max', 'min', 'num', 'number', 'total', 'has', 'is', 'needs', 'uses', 'with')
                      or words[cardinality(words)] = 'tokens'));
end
$_$;

CREATE FUNCTION public.forge_job_estimates() RETURNS TABLE(name text, value text, jobs bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.forge_lane(job_type text, queue text, worker_capability text, priority integer) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((hashtextextended(job_type, hashtextextended(queue, hashtextextended(COALESCE(worker_capability, ''::text), (0)::bigint))) & (~ (127)::bigint)) | ((100 - priority))::bigint);

CREATE FUNCTION public.forge_lane_heads() RETURNS TABLE(lane bigint, job_type text, queue text, worker_capability text, id uuid, scheduled_at timestamp with time zone)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
with recursive lanes as (
    (select forge_lane(job.job_type, job.queue, job.worker_capability, priority) as lane,
            job.job_type, job.queue, job.worker_capability, job.id, job.scheduled_at
     from forge_jobs as job
     where status in ('pending', 'retry')
     order by forge_lane(job.job_type, job.queue, job.worker_capability, priority), job.scheduled_at, job.id
     limit 1)
    union all
    select next.*
    from lanes
    cross join lateral (
        select forge_lane(job.job_type, job.queue, job.worker_capability, priority) as lane,
               job.job_type, job.queue, job.worker_capability, job.id, job.scheduled_at
        from forge_jobs as job
        where status in ('pending', 'retry')
          and forge_lane(job.job_type, job.queue, job.worker_capability, priority) > lanes.lane
        order by forge_lane(job.job_type, job.queue, job.worker_capability, priority), job.scheduled_at, job.id
        limit 1) as next
)
select lane, job_type, queue, worker_capability, id, scheduled_at
from lanes
where case when forge_is_bound() then forge_is_operator() else true end
$$;

CREATE FUNCTION public.forge_lane_jobs(lane bigint, before_at timestamp with time zone, before_id uuid, most bigint) RETURNS TABLE(id uuid, scheduled_at timestamp with time zone)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $_$
select job.id, job.scheduled_at
from forge_jobs as job
where status in ('pending', 'retry')
  and forge_lane(job_type, queue, worker_capability, priority) = $1
  and (job.scheduled_at, job.id) < ($2, $3)
  and case when forge_is_bound() then forge_is_operator() else true end
order by job.scheduled_at, job.id
limit $4
$_$;

CREATE FUNCTION public.forge_looks_like(value text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $_$
declare
    head text;
    header text[];
begin
    -- A fast check: most texts match none of the patterns below.
    if length(value) < 6 or length(value) <= 512
       and value !~* 'eyJ|-----BEGIN|AKIA|ASIA|gh[pousr]_|github_pat_|xox|sk_|AIza|glpat-|://|(passw(or)?d|passphrase|key|secret|token)["''\\]*\s*[:=]|bearer|basic|\d-\d\d-\d|(\d\D?){12}\d|data:|[<%{\n]|-version:|-encoding:|^(JVBE|UEsD|0M8R|e1xy|RnJv|UmVj|TUlN|UmV0|U3Vi)'
    then
        return null;
    end if;
    head := left(value, 1000);
    header := regexp_match(head, '\y(bearer|basic)\s+([\w+/.~-]{6,})', 'i');
    return case
        when head ~ '\yeyJ[\w-]{8,}\.[\w-]{4,}\.' then 'a JSON web token'
        when head ~ '-----BEGIN [A-Z0-9 ]*PRIVATE KEY' then 'a private key'
        when head ~ '\y((AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_\w{30,}|github_pat_\w{30,}|xox[abprs]-[\w-]{10,}|sk_(live|test)_\w{10,}|AIza[\w-]{35}|glpat-[\w-]{20})'
            then 'an access key'
        when head ~ '\y\w[\w+.-]{0,20}://[^/\s:@]*:[^/\s@]+@' then 'a URL with a password'
        when head ~* '(password|passwd|passphrase|api[_-]?key|client[_-]?secret|access[_-]?token|refresh[_-]?token|private[_-]?key)["''\\]*\s*[:=]\s*["''\\]*[^\s"''&,;}\\]{3,}'
            then 'a secret with its name'
        when head ~ '\y(?!000|666|9\d\d)\d{3}-(?!00)\d\d-(?!0000)\d{4}\y(?!-)' then 'a social security number'
        when lower(header[1]) = 'bearer' and (length(header[2]) >= 20 or header[2] ~ '\d') then 'bearer credentials'
        when case when lower(header[1]) = 'basic' and header[2] ~ '^[A-Za-z0-9+/]+$' and length(header[2]) % 4 <> 1
                  then position('\x3a'::bytea in decode(rpad(header[2], (length(header[2]) + 3) / 4 * 4, '='), 'base64')) > 0
             end then 'basic credentials'
        when head ~ '(\d\D?){12}\d' and head !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
            and exists (select from regexp_matches(
                            normalize(head, nfkc),
                            '(?<![0-9A-Za-z])\d(?:[ ._\u2010-\u2015\u00a0-]{0,2}\d)+(?![0-9A-Za-z])', 'g') as run
                        where forge_is_card(regexp_replace(run[1], '\D', '', 'g')))
            then 'a card number'
        when head ~* '^\s*data:[\w.+/-]*;base64,' then 'an embedded file'
        when head ~* '<!doctype html|<html[\s>]|<body[\s>]|^%PDF-|^\{\\rtf|^[ \t\r\n]*<\?xml|^[ \t\r\n]*<(p|div|table|center|blockquote|span|ul|ol|h[1-6])[ \t\r\n>]|</(p|div|table|td|tr|ul|ol|li|blockquote|span|h[1-6])>'
            then 'an embedded document'
        when head ~* '(?w)^mime-version:\s*\d|^content-transfer-encoding:|\A[ \t\r\n]*(dear|hi|hello)[ \t][^\r\n,]{1,60},[ \t]*\r?\n'
            then 'an embedded mail'
        when head ~ '^(JVBERi0|UEsDB[AB]|0M8R4KGx|e1xydG|RnJvbTog|UmVjZWl2ZWQ6|TUlNRS1WZXJz|UmV0dXJuLVBhdGg6|U3ViamVjdDog)[A-Za-z0-9+/=_\r\n-]{8,}$'
            then 'an embedded file in base64'
        when position(E'\n' in head) > 0
            -- at least two kinds of headers: sender, recipient, subject or date
            and (head ~* '(?w)^(from|sender|reply-to|return-path|received|delivered-to|message-id):[ \t]*[^ \t\r\n]')::integer
              + (head ~* '(?w)^(to|cc|bcc):[^\r\n]*@')::integer
              + (head ~* '(?w)^(subject|date):[ \t]*[^ \t\r\n]')::integer > 1 then 'an embedded mail'
        when length(head) > 512 and head ~ '^[\w+/=-]+(\r?\n[\w+/=-]+)*\s*$' and head ~ '[^[:alpha:]]'
            then 'an embedded file in base64'
        when length(value) > 1000 then 'an embedded text of more than 1,000 characters'
    end;
end
$_$;

CREATE FUNCTION public.forge_may_be_secret(name text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((octet_length(name) <> length(name)) OR (regexp_replace(lower("left"(name, 200)), '[^a-z0-9]'::text, ''::text, 'g'::text) ~ 'passw|passphrase|passcode|secret|apikey|authorization|credential|privatekey|accesskey|encryptionkey|signingkey|creditcard|cardnum|socialsecurity|bankaccount|passportnumber|cookie|token|pwd|jwt|bearer|ssn|cvv|cvc|pin|otp|iban|body|content|doc|attachment|letter|transcript|html|markdown|mail|message|text|file|plain|raw'::text));

CREATE FUNCTION public.forge_may_dispatch(caller jsonb, tenant_id bigint, job_type text, queue text, auth jsonb, max_attempts integer) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.forge_may_sign(caller jsonb, name text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
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

CREATE FUNCTION public.forge_name_cause() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    new.fingerprint := left(md5(concat_ws('|', new.job_type, coalesce(new.category, ''),
                                          coalesce(new.error_class, ''), new.exception)), 16);
    return new;
end
$$;

CREATE FUNCTION public.forge_new_number() RETURNS bigint
    LANGUAGE sql
    RETURN (((((EXTRACT(epoch FROM clock_timestamp()) - (1577836800)::numeric) * (1000000)::numeric))::bigint << 2) | (nextval('public.forge_numbers'::regclass) & (3)::bigint));

CREATE FUNCTION public.forge_payload_version(payload jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (jsonb_typeof((payload -> 'payload_version'::text)) = 'string'::text) THEN (payload ->> 'payload_version'::text) ELSE NULL::text END;

CREATE FUNCTION public.forge_references(category text) RETURNS text[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE category WHEN 'ingestion'::text THEN '{connection_id,external_message_id}'::text[] WHEN 'sync'::text THEN '{connection_id,calendar_id,event_id}'::text[] WHEN 'recurrence'::text THEN '{recurrence_id,period_id}'::text[] WHEN 'orchestration'::text THEN '{execution_id,step_id}'::text[] WHEN 'documents'::text THEN '{document_id}'::text[] WHEN 'notifications'::text THEN '{notification_id,recipient_id,user_id}'::text[] ELSE '{}'::text[] END;

CREATE FUNCTION public.forge_refuse_job() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.forge_refuse_key_change() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    raise exception 'job % cannot change its idempotency key or the tenant of that key', new.id
        using errcode = 'check_violation', constraint = 'forge_jobs_key_change',
              hint = 'cancel the job and dispatch a new one';
end
$$;

CREATE FUNCTION public.forge_refuse_redacted(payload jsonb, what text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $_$
declare
    place text;
begin
    if strpos(payload::text, '[redacted]') = 0 then
        return;
    end if;
    with recursive parts as (
        select '$' as path, '' as name, payload as value
        union all
        select parts.path || part.step, part.name, part.value
        from parts
        cross join lateral (
            select '.' || field.key as step, field.key as name, field.value
            from jsonb_each(case when jsonb_typeof(parts.value) = 'object' then parts.value else '{}' end) as field
            union all
            select '[' || (item.place - 1) || ']', '', item.value
            from jsonb_array_elements(case when jsonb_typeof(parts.value) = 'array' then parts.value else '[]' end)
                 with ordinality as item (value, place)
        ) as part
    )
    select path into place
    from parts
    where strpos(name, '[redacted]') > 0
       or jsonb_typeof(value) = 'string' and strpos(value #>> '{}', '[redacted]') > 0
    order by path
    limit 1;
    raise exception '%: % is a redacted value', what, place
        using errcode = 'invalid_parameter_value', hint = 'write the value itself, or leave it out to keep it';
end
$_$;

CREATE FUNCTION public.forge_refuse_review() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    raise exception 'dead letter % is already % and cannot become %', old.dlq_id, old.status, new.status
        using errcode = 'check_violation', constraint = 'forge_dead_letters_review',
              hint = 'reprocess the dead letter of its new job, or dispatch a new job';
end
$$;

CREATE FUNCTION public.forge_retry_key(old_key text, dlq_id bigint, at numeric) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (old_key IS NULL) THEN ((('dlq_'::text || dlq_id) || '_retry_'::text) || round(at, 3)) WHEN (length(((old_key || '_retry_'::text) || round(at, 3))) <= 255) THEN ((old_key || '_retry_'::text) || round(at, 3)) ELSE (((("left"(old_key, ((255 - 33) - length(('_retry_'::text || round(at, 3))))) || '~'::text) || md5(old_key)) || '_retry_'::text) || round(at, 3)) END;

CREATE FUNCTION public.forge_ruled_payload(kind public.forge_job_types, payload jsonb, tenant bigint, correlation uuid, given_key text) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $_$
declare
    envelope constant text[] := array['tenant_id', 'correlation_id', 'idempotency_key'];
    key text;
begin
    if jsonb_typeof(payload) <> 'object' then
        raise exception 'the payload of % must be an object', kind.name using errcode = 'invalid_parameter_value';
    elsif jsonb_typeof(payload -> 'tenant_id') <> 'null'
          and (jsonb_typeof(payload -> 'tenant_id') <> 'number' or payload ->> 'tenant_id' !~ '^-?[0-9]+$') then
        raise exception '$.tenant_id must be a whole number' using errcode = 'invalid_parameter_value';
    elsif jsonb_typeof(payload -> 'correlation_id') <> 'null'
          and (jsonb_typeof(payload -> 'correlation_id') <> 'string'
               or payload ->> 'correlation_id' !~* '^\{?[0-9a-f]{4}(-?[0-9a-f]{4}){7}\}?$') then
        raise exception '$.correlation_id must be a UUID'
            using errcode = 'invalid_parameter_value', hint = 'such as 550e8400-e29b-41d4-a716-446655440000';
    elsif jsonb_typeof(payload -> 'payload_version') not in ('string', 'null') then
        raise exception '$.payload_version must be text' using errcode = 'invalid_parameter_value', hint = 'such as "1.0"';
    end if;
    key := case
        when given_key is not null or coalesce(payload -> 'idempotency_key', 'null') <> 'null' or kind.idempotent is null
            then forge_agreed('idempotency_key', payload -> 'idempotency_key', given_key)
        else forge_idempotency_key(kind.name, kind.idempotent,
                                   case kind.idempotent when 'input' then payload - envelope else payload end)
    end;
    -- long numbers are normal in a key
    if forge_looks_like(key) <> 'a card number' then
        raise exception '$.idempotency_key looks like %', forge_looks_like(key)
            using errcode = 'invalid_parameter_value', hint = 'make the key of ids';
    end if;
    perform forge_check_sensitive(payload - envelope, kind.allow_sensitive);
    return payload || jsonb_build_object(
        'tenant_id', forge_agreed('tenant_id', payload -> 'tenant_id', tenant::text)::bigint,
        'correlation_id', forge_agreed('correlation_id', payload -> 'correlation_id', correlation::text)::uuid,
        'idempotency_key', forge_check_name(key, 'idempotency_key'));
end
$_$;

CREATE FUNCTION public.forge_set_drained(workers uuid[], is_drained boolean, actor text, reason text) RETURNS SETOF public.forge_workers
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    if forge_is_bound() then
        if not forge_is_operator() then
            raise exception 'only operators drain and resume workers: a worker serves every tenant'
                using errcode = 'insufficient_privilege', hint = 'use a connection that acts for an operator';
        end if;
        perform forge_may_sign(forge_caller(), actor);
    end if;
    return query
    with changed as (
        update forge_workers as worker
        set drained_at = case when is_drained then now() end,
            drained_by = case when is_drained then actor end,
            drain_reason = case when is_drained then reason end
        where (workers is null or worker.id = any (workers)) and (worker.drained_at is null) = is_drained
        returning worker.*
    ), audited as (
        insert into forge_audit_events (event, actor, notes, detail)
        select case when is_drained then 'worker_drained' else 'worker_resumed' end, forge_set_drained.actor, reason,
               jsonb_build_object('worker_id', changed.id, 'hostname', changed.hostname, 'pid', changed.pid)
        from changed
    )
    select * from changed;
end
$$;

CREATE FUNCTION public.forge_signs_callers() RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
begin
    return exists (select from forge_signing_keys);
end
$$;

CREATE FUNCTION public.forge_take_keys(tenants bigint[], keys text[], jobs uuid[]) RETURNS TABLE(tenant_id bigint, key text, job_id uuid)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.forge_uuidv7() RETURNS uuid
    LANGUAGE sql PARALLEL SAFE
    RETURN uuidv7();

CREATE TRIGGER forge_dead_letters_added AFTER INSERT ON public.forge_dead_letters REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.forge_count_dead_letters();

CREATE TRIGGER forge_dead_letters_cause BEFORE INSERT ON public.forge_dead_letters FOR EACH ROW WHEN (((new.fingerprint IS NULL) OR (new.fingerprint = ''::text))) EXECUTE FUNCTION public.forge_name_cause();

CREATE TRIGGER forge_dead_letters_changed AFTER UPDATE ON public.forge_dead_letters REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.forge_count_dead_letters();

CREATE TRIGGER forge_dead_letters_removed AFTER DELETE ON public.forge_dead_letters REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.forge_count_dead_letters();

CREATE TRIGGER forge_dead_letters_review AFTER UPDATE OF status, reviewed_at, reviewed_by, notes, new_job_id, edited_payload, request_id ON public.forge_dead_letters FOR EACH ROW WHEN ((((old.status)::text <> 'pending_review'::text) AND ((((((((new.status)::text IS DISTINCT FROM (old.status)::text) OR (new.reviewed_at IS DISTINCT FROM old.reviewed_at)) OR (new.reviewed_by IS DISTINCT FROM old.reviewed_by)) OR (new.notes IS DISTINCT FROM old.notes)) OR (new.new_job_id IS DISTINCT FROM old.new_job_id)) OR (new.edited_payload IS DISTINCT FROM old.edited_payload)) OR (new.request_id IS DISTINCT FROM old.request_id)))) EXECUTE FUNCTION public.forge_refuse_review();

CREATE TRIGGER forge_jobs_begin AFTER INSERT ON public.forge_jobs FOR EACH ROW WHEN ((((new.status)::text <> 'pending'::text) OR (new.lease <> 0) OR (new.attempts <> 0) OR (new.priority <> ALL ('{0,25,50,75,100}'::integer[])) OR (new.max_attempts < 1) OR (new.idempotency_key IS NOT NULL))) EXECUTE FUNCTION public.forge_begin_job();

CREATE TRIGGER forge_jobs_key_change AFTER UPDATE OF idempotency_key, tenant_id ON public.forge_jobs FOR EACH ROW WHEN ((((new.idempotency_key)::text IS DISTINCT FROM (old.idempotency_key)::text) OR ((new.idempotency_key IS NOT NULL) AND (new.tenant_id IS DISTINCT FROM old.tenant_id)))) EXECUTE FUNCTION public.forge_refuse_key_change();

CREATE TRIGGER forge_jobs_lifecycle AFTER UPDATE OF status, lease, worker_id ON public.forge_jobs FOR EACH ROW WHEN (((((old.status)::text <> 'running'::text) OR ((new.status)::text <> 'completed'::text) OR (new.lease <> old.lease)) AND (((old.status)::text <> 'pending'::text) OR ((new.status)::text <> 'running'::text) OR (new.lease <> (old.lease + 1)) OR (new.worker_id IS NULL)) AND public.forge_forbids_move((old.status)::text, (new.status)::text, (new.lease - old.lease), new.worker_id, new.lease))) EXECUTE FUNCTION public.forge_refuse_job();

CREATE TRIGGER forge_jobs_limits AFTER UPDATE OF priority, max_attempts ON public.forge_jobs FOR EACH ROW WHEN (((new.priority <> ALL ('{0,25,50,75,100}'::integer[])) OR (new.max_attempts < 1))) EXECUTE FUNCTION public.forge_refuse_job();

CREATE TRIGGER forge_jobs_outbox AFTER INSERT ON public.forge_jobs FOR EACH ROW WHEN (((new.queue)::text <> 'forge'::text)) EXECUTE FUNCTION public.forge_add_to_outbox();

ALTER TABLE public.forge_jobs DISABLE TRIGGER forge_jobs_outbox;

CREATE TRIGGER forge_jobs_outbox_again AFTER UPDATE OF status, scheduled_at ON public.forge_jobs FOR EACH ROW WHEN ((((new.status)::text = ANY ((ARRAY['pending'::character varying, 'retry'::character varying])::text[])) AND ((new.queue)::text <> 'forge'::text) AND (((old.status)::text <> ALL ((ARRAY['pending'::character varying, 'retry'::character varying])::text[])) OR (new.scheduled_at <> old.scheduled_at)))) EXECUTE FUNCTION public.forge_add_to_outbox();

ALTER TABLE public.forge_jobs DISABLE TRIGGER forge_jobs_outbox_again;

CREATE TRIGGER forge_jobs_version AFTER UPDATE ON public.forge_jobs FOR EACH ROW WHEN ((new.version = old.version)) EXECUTE FUNCTION public.forge_count_change();

ALTER TABLE public.forge_attempt_logs ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.forge_attempts ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.forge_audit_events ENABLE ROW LEVEL SECURITY;

CREATE POLICY forge_count ON public.forge_statistics FOR INSERT WITH CHECK ((( SELECT public.forge_caller() AS forge_caller) IS NOT NULL));

ALTER TABLE public.forge_dead_letter_counts ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.forge_dead_letters ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.forge_idempotency_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.forge_jobs ENABLE ROW LEVEL SECURITY;

CREATE POLICY forge_operator ON public.forge_pauses USING (( SELECT public.forge_is_operator() AS forge_is_operator)) WITH CHECK ((( SELECT public.forge_is_operator() AS forge_is_operator) AND public.forge_may_sign(( SELECT public.forge_caller() AS forge_caller), actor)));

CREATE POLICY forge_operator ON public.forge_statistics FOR SELECT USING (( SELECT public.forge_is_operator() AS forge_is_operator));

ALTER TABLE public.forge_outbox ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.forge_pauses ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.forge_schedules ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.forge_statistics ENABLE ROW LEVEL SECURITY;

CREATE POLICY forge_tenant ON public.forge_attempt_logs USING (((tenant_id = ( SELECT public.forge_current_tenant() AS forge_current_tenant)) OR ( SELECT public.forge_is_operator() AS forge_is_operator)));

CREATE POLICY forge_tenant ON public.forge_attempts USING (((tenant_id = ( SELECT public.forge_current_tenant() AS forge_current_tenant)) OR ( SELECT public.forge_is_operator() AS forge_is_operator)));

CREATE POLICY forge_tenant ON public.forge_audit_events USING (((tenant_id = ( SELECT public.forge_current_tenant() AS forge_current_tenant)) OR ( SELECT public.forge_is_operator() AS forge_is_operator))) WITH CHECK ((((tenant_id = ( SELECT public.forge_current_tenant() AS forge_current_tenant)) OR ( SELECT public.forge_is_operator() AS forge_is_operator)) AND public.forge_may_sign(( SELECT public.forge_caller() AS forge_caller), actor)));

CREATE POLICY forge_tenant ON public.forge_dead_letter_counts USING (((tenant_id = ( SELECT public.forge_current_tenant() AS forge_current_tenant)) OR ( SELECT public.forge_is_operator() AS forge_is_operator)));

CREATE POLICY forge_tenant ON public.forge_dead_letters USING (((tenant_id = ( SELECT public.forge_current_tenant() AS forge_current_tenant)) OR ( SELECT public.forge_is_operator() AS forge_is_operator))) WITH CHECK ((((tenant_id = ( SELECT public.forge_current_tenant() AS forge_current_tenant)) OR ( SELECT public.forge_is_operator() AS forge_is_operator)) AND ((reviewed_by IS NULL) OR public.forge_may_sign(( SELECT public.forge_caller() AS forge_caller), reviewed_by))));

CREATE POLICY forge_tenant ON public.forge_idempotency_keys USING (((tenant_id = ( SELECT public.forge_current_tenant() AS forge_current_tenant)) OR ( SELECT public.forge_is_operator() AS forge_is_operator)));

CREATE POLICY forge_tenant ON public.forge_jobs USING (((tenant_id = ( SELECT public.forge_current_tenant() AS forge_current_tenant)) OR ( SELECT public.forge_is_operator() AS forge_is_operator))) WITH CHECK (public.forge_may_dispatch(( SELECT public.forge_caller() AS forge_caller), tenant_id, (job_type)::text, (queue)::text, auth, max_attempts));

CREATE POLICY forge_tenant ON public.forge_outbox USING ((( SELECT public.forge_is_operator() AS forge_is_operator) OR (EXISTS ( SELECT
   FROM public.forge_jobs job
  WHERE (job.id = forge_outbox.job_id)))));

CREATE POLICY forge_tenant ON public.forge_schedules USING (((tenant_id = ( SELECT public.forge_current_tenant() AS forge_current_tenant)) OR ( SELECT public.forge_is_operator() AS forge_is_operator)));

CREATE POLICY forge_tenant ON public.forge_tenant_statistics USING (((tenant_id = ( SELECT public.forge_current_tenant() AS forge_current_tenant)) OR ( SELECT public.forge_is_operator() AS forge_is_operator)));

ALTER TABLE public.forge_tenant_statistics ENABLE ROW LEVEL SECURITY;

REVOKE ALL ON FUNCTION public.forge_add_to_outbox() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_agreed(what text, inside jsonb, outside text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_begin_job() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_caller() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_check_json(value jsonb, what text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_check_moment(value timestamp with time zone, what text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_check_name(value text, what text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_check_priority(value text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_check_references(kind public.forge_job_types, payload jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_check_sensitive(payload jsonb, allowed text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_content_place(name text, inside integer, beside_subject boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_count_change() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_count_dead_letters() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_current_tenant() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_demand(queue text, ahead interval, with_schedules boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_dispatch(job_type text, input jsonb, priority text, scheduled_at timestamp with time zone, delay interval, idempotency_key text, tenant_id bigint, correlation_id uuid, payload_version text, queue text, tags text[], expires_at timestamp with time zone, auth jsonb, meta jsonb, notify boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_forbids_move(was text, becomes text, growth bigint, owner uuid, lease bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_has(payload jsonb, name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_idempotency_key(job_type text, idempotent text, input jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_is_bound() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_is_card(digits text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_is_content(value text, level integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_is_operator() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_refers(word text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_words(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_is_reference(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_is_secret(name text, value jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_job_estimates() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_lane(job_type text, queue text, worker_capability text, priority integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_lane_heads() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_lane_jobs(lane bigint, before_at timestamp with time zone, before_id uuid, most bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_looks_like(value text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_may_be_secret(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_may_dispatch(caller jsonb, tenant_id bigint, job_type text, queue text, auth jsonb, max_attempts integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_may_sign(caller jsonb, name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_name_cause() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_new_number() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_payload_version(payload jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_references(category text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_refuse_job() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_refuse_key_change() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_refuse_redacted(payload jsonb, what text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_refuse_review() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_retry_key(old_key text, dlq_id bigint, at numeric) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_ruled_payload(kind public.forge_job_types, payload jsonb, tenant bigint, correlation uuid, given_key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_set_drained(workers uuid[], is_drained boolean, actor text, reason text) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_signs_callers() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_take_keys(tenants bigint[], keys text[], jobs uuid[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION public.forge_uuidv7() FROM PUBLIC;
