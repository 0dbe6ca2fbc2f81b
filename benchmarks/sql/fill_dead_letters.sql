-- $1 dead letters of $2 causes and $3 tenants; one in ten is reviewed already.
insert into forge_dead_letters
    (job_id, job_type, category, queue, priority, tenant_id, payload, payload_version, error_class,
     exception, error_message, place, fingerprint, attempt_count, original_created_at,
     original_scheduled_at, status, reviewed_at)
select gen_random_uuid(), 'type_' || n % $2 % 50, 'sync', 'default', 50, n % $3,
       jsonb_build_object('n', n), '1.0', 'transient', 'ValueError', 'no luck', 'jobs:run_' || n % $2,
       md5((n % $2)::text), 5, now(), now(),
       case when n % 10 = 0 then 'discarded' else 'pending_review' end,
       case when n % 10 = 0 then now() end
from generate_series(1, $1::bigint) as n
