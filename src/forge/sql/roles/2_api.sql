-- forge_api reads all, wishes for jobs, and moves none of them.
grant select on
    forge_jobs, forge_job_types, forge_schedule_types, forge_idempotency_keys, forge_attempts, forge_dead_letters,
    forge_audit_events, forge_schedules, forge_workers, forge_outbox, forge_migrations
to forge_api;

-- the columns of a wish: status, lease, worker and times are not the caller's to choose
grant insert
    (id, job_type, input, priority, max_attempts, worker_capability, idempotency_key, scheduled_at, queue,
     tenant_id, category, correlation_id, payload_version, auth, traceparent, timeout, expires_at, retry_of,
     parent_id, concurrency_key, tags, meta)
on forge_jobs to forge_api;

-- keys are written by forge_take_keys and by the trigger of forge_jobs
-- when it happened is not the caller's to choose, and the policy decides in whose name
revoke insert on forge_audit_events, forge_outbox from forge_api;
grant insert (event, actor, tenant_id, job_id, dlq_id, schedule_id, notes, detail) on forge_audit_events to forge_api;
-- schedules/ensure, enable, lock and run_now are the API's, so that a mutation can subscribe somebody
-- and see to the schedule in one transaction; runs are not
grant insert
    (id, type, key, tenant_id, payload, next_run_at, tick_at, every, cron, tz, missed, jitter, priority,
     worker_capability, timeout),
update
    (enabled, next_run_at, tick_at, updated_at, payload, every, cron, tz, missed, jitter, priority,
     worker_capability, timeout)
on forge_schedules to forge_api;
-- review of dead letters is the API's; the letters themselves and their counts are not
grant select on forge_dead_letter_counts to forge_api;
grant update (status, reviewed_at, reviewed_by, notes, new_job_id, edited_payload, request_id)
on forge_dead_letters to forge_api;
grant usage on sequence forge_numbers to forge_api;

grant execute on function
    forge_uuidv7, forge_new_number, forge_lane, forge_check_name, forge_check_moment, forge_check_priority,
    forge_check_json, forge_idempotency_key, forge_dispatch, forge_current_tenant, forge_retry_key, forge_words,
    forge_refers, forge_is_reference, forge_may_tell, forge_is_secret, forge_content_place, forge_is_content, forge_is_card,
    forge_looks_like,
    forge_agreed, forge_payload_version, forge_references, forge_has, forge_check_references, forge_check_sensitive,
    forge_ruled_payload, forge_job_estimates, forge_take_keys,
    forge_caller, forge_signs_callers, forge_is_bound, forge_is_operator, forge_may_sign, forge_may_dispatch
to forge_api;

-- No request may keep the database busy for longer; somebody with a reason sets another limit.
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
        raise notice 'forge_api has no statement_timeout: that is for whoever made the role';
end
$$;
