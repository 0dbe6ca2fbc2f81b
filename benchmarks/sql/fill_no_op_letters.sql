-- $1 dead letters of no-op jobs, all of one cause.
insert into forge_dead_letters
    (job_id, job_type, queue, priority, payload, payload_version, exception, attempt_count,
     original_created_at, original_scheduled_at)
select gen_random_uuid(), 'no_op', 'default', 50, jsonb_build_object('n', n), '1.0', 'ValueError', 1,
       now(), now()
from generate_series(1, $1::bigint) as n
