-- -> pending: jobs that share nothing, each with its own type and options.
-- Lists, one entry a job: $1 ids, $2 inputs, $3 types, $4 priorities, $5 max_attempts, $6 queues,
-- $7 capabilities, $8 times, $9 delays, $10 tenants, $11 categories, $12 correlation ids, $13 auth,
-- $14 when they expire, $15 traces.
insert into forge_jobs
    (id, input, job_type, priority, max_attempts, queue, worker_capability, scheduled_at, tenant_id,
     category, correlation_id, auth, expires_at, traceparent)
select id, input::jsonb, job_type, priority, max_attempts, queue, worker_capability,
       coalesce(scheduled_at, now()) + coalesce(delay, '0'), tenant_id, category, correlation_id,
       auth::jsonb, expires_at, traceparent
from unnest($1::uuid[], $2::text[], $3::text[], $4::integer[], $5::integer[], $6::text[], $7::text[],
            $8::timestamptz[], $9::interval[], $10::bigint[], $11::text[], $12::uuid[], $13::text[],
            $14::timestamptz[], $15::text[])
    as wish (id, input, job_type, priority, max_attempts, queue, worker_capability, scheduled_at, delay,
             tenant_id, category, correlation_id, auth, expires_at, traceparent);
