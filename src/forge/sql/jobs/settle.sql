-- running -> retry, pending, failed or dead_letter (claimed too, where the lifecycle allows it),
-- for attempts that still hold the lease. Failures are recorded and dead letters are inserted in
-- the same statement.
-- $1 ids, $2 leases, $3 the allowed current statuses, $4 the new status, $5 seconds until they can
-- run again, $6 attempts to give back, $7 crashes, $8 lone crashes, $9 error classes, $10 exception
-- names, $11 messages, $12 traces, $13 the outcome to record (null: no record), $14 fingerprints,
-- $15 places in the code, $16 how many snoozes of a job are kept in its log.
-- Returns the accepted ids.
with acks as materialized (
    select * from unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::float8[], $6::integer[],
                         $7::integer[], $8::integer[], $9::text[], $10::text[], $11::text[], $12::text[],
                         $13::text[], $14::text[], $15::text[])
        as ack (id, lease, allowed, status, delay, given_back, crashes, lone_crashes, error_class,
                exception, message, trace, outcome, fingerprint, place)
), settled as (
    update forge_jobs as job
    set status = ack.status,
        version = job.version + 1,
        scheduled_at = case when ack.delay is null then job.scheduled_at
                            else now() + make_interval(secs => ack.delay) end,
        original_scheduled_at = case when ack.delay is null then job.original_scheduled_at
                                     else coalesce(job.original_scheduled_at, job.scheduled_at) end,
        attempts = job.attempts - ack.given_back,
        crashes = job.crashes + ack.crashes,
        lone_crashes = job.lone_crashes + ack.lone_crashes,
        suspect = job.suspect or ack.lone_crashes > 0,
        last_error = coalesce(left(ack.message, 500), job.last_error),
        error_class = coalesce(ack.error_class, job.error_class),
        failed_at = case when ack.status in ('failed', 'dead_letter') then now() else job.failed_at end
    from acks as ack
    where job.id = any (array[ack.id]) and job.lease = ack.lease and job.status = any (string_to_array(ack.allowed, ' '))
    returning job.*, ack.given_back, ack.delay, ack.outcome, ack.exception, ack.message, ack.trace, ack.fingerprint,
        ack.place, ack.error_class as own_error_class
), recorded as (
    insert into forge_attempts
        (job_id, lease, attempt, tenant_id, worker_id, outcome, error_class, exception, error, trace,
         claimed_at, started_at, retry_at)
    select id, lease, attempts + given_back, tenant_id, worker_id, outcome, own_error_class, exception,
           message, trace, claimed_at, started_at, case when status = 'retry' then scheduled_at end
    from settled
    where outcome is not null
    on conflict do nothing
), snoozed as (
    insert into forge_attempt_logs (job_id, lease, kind, slot, number, tenant_id, at, fields)
    select id, lease, 'snoozed', 0, attempts + given_back, tenant_id, now(),
           jsonb_build_object('worker_id', worker_id, 'claimed_at', claimed_at, 'started_at', started_at,
                              'until', scheduled_at)
    from settled
    where outcome is null and status = 'pending' and delay is not null
    on conflict do nothing
), forgotten as (
    delete from forge_attempt_logs as old
    using settled
    where settled.outcome is null and settled.status = 'pending' and settled.delay is not null
      and old.job_id = any (array[settled.id]) and old.lease = settled.lease - $16 and old.kind = 'snoozed'
), buried as (
    insert into forge_dead_letters
        (job_id, job_type, category, queue, priority, tenant_id, correlation_id, idempotency_key, payload,
         payload_version, error_class, exception, error_message, fingerprint, place, attempt_count, crashes,
         original_created_at, original_scheduled_at, attempts)
    select id, job_type, category, queue, priority, tenant_id, correlation_id, idempotency_key, input,
           payload_version, own_error_class, exception, last_error, fingerprint, place,
           attempts, crashes, created_at, coalesce(original_scheduled_at, scheduled_at),
           (select coalesce(jsonb_agg(jsonb_build_object(
                       'attempt', past.attempt, 'outcome', past.outcome, 'error_class', past.error_class,
                       'exception', past.exception, 'error', past.error,
                       'started_at', past.started_at, 'ended_at', past.ended_at) order by past.lease), '[]')
            from forge_attempts as past where past.job_id = settled.id)
           || jsonb_build_array(jsonb_build_object(
                       'attempt', attempts + given_back, 'outcome', outcome, 'error_class', own_error_class,
                       'exception', exception, 'error', message,
                       'started_at', started_at, 'ended_at', now()))
    from settled
    where status = 'dead_letter'
)
select id from settled;
