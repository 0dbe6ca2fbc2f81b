-- forge_worker does all that a worker does; the tables themselves it cannot change.
grant select, insert, update, delete on
    forge_jobs, forge_job_types, forge_idempotency_keys, forge_attempts, forge_dead_letters,
    forge_audit_events, forge_schedules, forge_workers, forge_outbox
to forge_worker;
grant select on forge_migrations to forge_worker;
grant usage on sequence
    forge_audit_events_id_seq, forge_outbox_id_seq, forge_dead_letters_dlq_id_seq
to forge_worker;

grant execute on function
    forge_uuidv7, forge_lane, forge_check_name, forge_check_moment, forge_check_priority,
    forge_idempotency_key, forge_dispatch
to forge_worker;
