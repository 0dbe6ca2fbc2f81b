-- Generated from sql/migrations by `make format`: what they come to, for reading.
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
        raise exception 'priority % is none of the five', quote_literal(value)
            using errcode = 'invalid_parameter_value',
                  hint = 'use critical (100), high (75), normal (50), low (25) or background (0)';
    end if;
    return found;
end
$$;

CREATE FUNCTION public.forge_dispatch(job_type text, input jsonb DEFAULT '{}'::jsonb, priority text DEFAULT NULL::text, scheduled_at timestamp with time zone DEFAULT NULL::timestamp with time zone, delay interval DEFAULT NULL::interval, idempotency_key text DEFAULT NULL::text, tenant_id bigint DEFAULT NULL::bigint, correlation_id uuid DEFAULT NULL::uuid, queue text DEFAULT NULL::text, tags text[] DEFAULT NULL::text[], expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, auth jsonb DEFAULT NULL::jsonb, meta jsonb DEFAULT NULL::jsonb, notify boolean DEFAULT false) RETURNS uuid
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $$
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

CREATE FUNCTION public.forge_lane(job_type text, queue text, worker_capability text, priority integer) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((hashtextextended(job_type, hashtextextended(queue, hashtextextended(COALESCE(worker_capability, ''::text), (0)::bigint))) & (~ (127)::bigint)) | ((100 - priority))::bigint);

CREATE FUNCTION public.forge_refuse_job() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.forge_uuidv7() RETURNS uuid
    LANGUAGE sql PARALLEL SAFE
    RETURN uuidv7();

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
    ended_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.forge_audit_events (
    id bigint NOT NULL,
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

ALTER TABLE public.forge_audit_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.forge_audit_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.forge_dead_letters (
    dlq_id bigint NOT NULL,
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
    meta jsonb,
    CONSTRAINT forge_dead_letters_status CHECK (((status)::text = ANY ((ARRAY['pending_review'::character varying, 'reprocessed'::character varying, 'discarded'::character varying])::text[])))
);

ALTER TABLE public.forge_dead_letters ALTER COLUMN dlq_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.forge_dead_letters_dlq_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.forge_idempotency_keys (
    tenant_id bigint,
    key character varying(255) NOT NULL,
    job_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.forge_job_types (
    name character varying(255) NOT NULL,
    queue character varying(255) DEFAULT 'default'::character varying NOT NULL,
    priority integer DEFAULT 50 NOT NULL,
    max_attempts integer DEFAULT 3 NOT NULL,
    timeout interval DEFAULT '01:00:00'::interval NOT NULL,
    worker_capability character varying(255),
    category character varying(32),
    requires text[] DEFAULT '{}'::text[] NOT NULL,
    idempotent text,
    dead_letter boolean DEFAULT true NOT NULL,
    isolation character varying(32) DEFAULT 'none'::character varying NOT NULL,
    retry jsonb,
    input_schema jsonb,
    output_schema jsonb,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.forge_jobs (
    id uuid DEFAULT public.forge_uuidv7() NOT NULL,
    lease bigint DEFAULT 0 NOT NULL,
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
    concurrency_key character varying(255),
    tags text[],
    meta jsonb,
    checkpoint jsonb
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_analyze_scale_factor='0.05', autovacuum_vacuum_cost_delay='0');

CREATE TABLE public.forge_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.forge_outbox (
    id bigint NOT NULL,
    job_id uuid NOT NULL,
    send_at timestamp with time zone DEFAULT now() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE public.forge_outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.forge_outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

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
    CONSTRAINT forge_schedules_missed CHECK (((missed)::text = ANY ((ARRAY['once'::character varying, 'skip'::character varying, 'all'::character varying])::text[]))),
    CONSTRAINT forge_schedules_priority CHECK ((priority = ANY (ARRAY[0, 25, 50, 75, 100])))
)
WITH (fillfactor='70');

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
    last_heartbeat timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='50');

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
    ADD CONSTRAINT forge_outbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.forge_schedules
    ADD CONSTRAINT forge_schedules_once UNIQUE NULLS NOT DISTINCT (tenant_id, type, key);

ALTER TABLE ONLY public.forge_schedules
    ADD CONSTRAINT forge_schedules_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.forge_workers
    ADD CONSTRAINT forge_workers_pkey PRIMARY KEY (id);

CREATE INDEX forge_idempotency_keys_created ON public.forge_idempotency_keys USING btree (created_at);

CREATE INDEX forge_jobs_ended ON public.forge_jobs USING btree (status, id) WHERE ((status)::text = ANY ((ARRAY['failed'::character varying, 'dead_letter'::character varying, 'cancelled'::character varying])::text[]));

CREATE INDEX forge_jobs_owned ON public.forge_jobs USING btree (worker_id) WHERE ((status)::text = ANY ((ARRAY['claimed'::character varying, 'running'::character varying])::text[]));

CREATE INDEX forge_jobs_ready ON public.forge_jobs USING btree (public.forge_lane((job_type)::text, (queue)::text, (worker_capability)::text, priority), scheduled_at, id) WHERE ((status)::text = ANY ((ARRAY['pending'::character varying, 'retry'::character varying])::text[]));

CREATE TRIGGER forge_jobs_begin AFTER INSERT ON public.forge_jobs FOR EACH ROW WHEN ((((new.status)::text <> 'pending'::text) OR (new.lease <> 0) OR (new.attempts <> 0) OR ((new.priority % 25) <> 0) OR (abs((new.priority - 50)) > 50) OR (new.max_attempts < 1))) EXECUTE FUNCTION public.forge_refuse_job();

CREATE TRIGGER forge_jobs_lifecycle AFTER UPDATE OF status, lease, worker_id ON public.forge_jobs FOR EACH ROW WHEN (((((old.status)::text <> 'running'::text) OR ((new.status)::text <> 'completed'::text) OR (new.lease <> old.lease)) AND (((old.status)::text <> 'pending'::text) OR ((new.status)::text <> 'running'::text) OR (new.lease <> (old.lease + 1)) OR (new.worker_id IS NULL)) AND public.forge_forbids_move((old.status)::text, (new.status)::text, (new.lease - old.lease), new.worker_id, new.lease))) EXECUTE FUNCTION public.forge_refuse_job();

CREATE TRIGGER forge_jobs_limits AFTER UPDATE OF priority, max_attempts ON public.forge_jobs FOR EACH ROW WHEN ((((new.priority % 25) <> 0) OR (abs((new.priority - 50)) > 50) OR (new.max_attempts < 1))) EXECUTE FUNCTION public.forge_refuse_job();
