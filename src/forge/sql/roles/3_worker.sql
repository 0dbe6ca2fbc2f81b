-- forge_worker does everything that a worker does, and cannot change the tables themselves.
grant select, insert, update, delete on
    forge_jobs, forge_job_types, forge_schedule_types, forge_idempotency_keys, forge_attempts, forge_attempt_logs, forge_dead_letters,
    forge_audit_events, forge_schedules, forge_workers, forge_outbox, forge_pauses
to forge_worker;
grant select on forge_migrations to forge_worker;
grant select, insert, update, delete on forge_dead_letter_counts, forge_statistics, forge_tenant_statistics
to forge_worker;

-- Workers serve all tenants. With a policy that is always true PostgreSQL plans their statements as
-- without row security.
do $$
declare
    name text;
begin
    foreach name in array array['forge_jobs', 'forge_idempotency_keys', 'forge_attempts', 'forge_attempt_logs', 'forge_dead_letters',
                                'forge_dead_letter_counts', 'forge_audit_events', 'forge_schedules',
                                'forge_outbox', 'forge_pauses', 'forge_statistics',
                                'forge_tenant_statistics'] loop
        if not exists (select from pg_policy where polname = 'forge_worker' and polrelid = name::regclass) then
            execute format('create policy forge_worker on %I to forge_worker using (true)', name);
        end if;
    end loop;
end
$$;
grant usage on sequence
    forge_numbers, forge_outbox_id_seq
to forge_worker;

grant execute on function
    forge_uuidv7, forge_new_number, forge_lane, forge_check_name, forge_check_moment, forge_check_priority,
    forge_check_json, forge_idempotency_key, forge_dispatch, forge_current_tenant, forge_retry_key, forge_words,
    forge_refers, forge_is_reference, forge_may_be_secret, forge_is_secret, forge_content_place, forge_is_content, forge_is_card,
    forge_looks_like,
    forge_agreed, forge_payload_version, forge_references, forge_has, forge_check_references, forge_check_sensitive,
    forge_refuse_redacted,
    forge_ruled_payload, forge_job_estimates, forge_take_keys, forge_set_drained, forge_lane_heads, forge_lane_jobs,
    forge_forbids_move,
    forge_caller, forge_signs_callers, forge_is_bound, forge_is_operator, forge_may_sign, forge_may_dispatch
to forge_worker;
