-- forge_api reads everything and dispatches jobs, and cannot change their status.
grant select on
    forge_jobs, forge_job_types, forge_schedule_types, forge_idempotency_keys, forge_attempts, forge_attempt_logs, forge_dead_letters,
    forge_audit_events, forge_schedules, forge_workers, forge_outbox, forge_pauses, forge_migrations
to forge_api;

-- The columns that dispatch sets: callers cannot choose status, lease, worker or times.
grant insert (
    /* generated grants */
    id, max_attempts, priority, scheduled_at, job_type, queue, worker_capability, input,
    idempotency_key, expires_at, timeout, tenant_id, category, correlation_id, payload_version,
    auth, traceparent, retry_of, parent_id, tags, meta /* end */
) on forge_jobs to forge_api;

-- forge_take_keys and a trigger of forge_jobs write idempotency keys.
-- Callers cannot choose the time of an audit event, and a policy checks the actor.
revoke insert on forge_audit_events, forge_outbox from forge_api;
grant insert (event, actor, tenant_id, job_id, dlq_id, schedule_id, notes, detail) on forge_audit_events to forge_api;
-- The API runs schedules/ensure, edit, enable, lock and run_now, so that a mutation can add a subscription
-- and its schedule in one transaction. It does not write runs.
grant insert
    (id, type, key, tenant_id, payload, next_run_at, tick_at, every, cron, tz, missed, jitter, priority,
     worker_capability, timeout),
update
    (enabled, next_run_at, tick_at, updated_at, payload, every, cron, tz, missed, jitter, priority,
     worker_capability, timeout, edited)
on forge_schedules to forge_api;
-- The API runs pauses/add and remove; row security lets only operators.
grant insert (id, type, queue, until, reason, actor), delete on forge_pauses to forge_api;
-- The API reviews dead letters; it writes neither the letters themselves nor their counts.
grant select on forge_dead_letter_counts to forge_api;
grant update (status, reviewed_at, reviewed_by, notes, new_job_id, edited_payload, request_id)
on forge_dead_letters to forge_api;
-- The API reads statistics, and counts the dead letters that it reprocesses.
grant select on forge_statistics, forge_tenant_statistics to forge_api;
grant insert (minute, job_type, queue, writer, reprocessed) on forge_statistics to forge_api;
grant insert (minute, tenant_id, writer, reprocessed) on forge_tenant_statistics to forge_api;
grant usage on sequence forge_numbers to forge_api;

grant execute on function
    forge_uuidv7, forge_new_number, forge_lane, forge_check_name, forge_check_moment, forge_check_priority,
    forge_check_json, forge_idempotency_key, forge_dispatch, forge_current_tenant, forge_retry_key, forge_words,
    forge_refers, forge_is_reference, forge_may_be_secret, forge_is_secret, forge_content_place, forge_is_content, forge_is_card,
    forge_looks_like,
    forge_agreed, forge_payload_version, forge_references, forge_has, forge_check_references, forge_check_sensitive,
    forge_refuse_redacted,
    forge_ruled_payload, forge_job_estimates, forge_take_keys, forge_set_drained, forge_lane_heads, forge_lane_jobs,
    forge_caller, forge_signs_callers, forge_is_bound, forge_is_operator, forge_may_sign, forge_may_dispatch
to forge_api;

-- Limits how long a request can keep the database busy. A limit that is already set stays.
do $$
begin
    if not exists (
        select from pg_db_role_setting
        where setdatabase = (select oid from pg_database where datname = current_database())
          and setrole = 'forge_api'::regrole
    ) then
        execute format('alter role forge_api in database %I set statement_timeout = %L', current_database(), '30s');
    end if;
exception
    when insufficient_privilege then
        raise notice 'forge_api has no statement_timeout; set one as the role that created forge_api';
end
$$;
