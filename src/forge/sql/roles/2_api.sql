-- forge_api reads all, wishes for jobs, and moves none of them.
grant select on
    forge_jobs, forge_job_types, forge_idempotency_keys, forge_attempts, forge_dead_letters,
    forge_audit_events, forge_schedules, forge_workers, forge_outbox, forge_migrations
to forge_api;

-- the columns of a wish: status, lease, worker and times are not the caller's to choose
grant insert
    (id, job_type, input, priority, max_attempts, worker_capability, idempotency_key, scheduled_at, queue,
     tenant_id, category, correlation_id, payload_version, auth, traceparent, timeout, expires_at, retry_of,
     parent_id, concurrency_key, tags, meta)
on forge_jobs to forge_api;

-- jobs/dispatch_once updates a known key with itself to find its job
grant insert, update (job_id) on forge_idempotency_keys to forge_api;
grant insert on forge_audit_events, forge_outbox to forge_api;
grant usage on sequence forge_audit_events_id_seq, forge_outbox_id_seq to forge_api;

grant execute on function
    forge_uuidv7, forge_lane, forge_check_name, forge_check_moment, forge_check_priority,
    forge_idempotency_key, forge_dispatch
to forge_api;
