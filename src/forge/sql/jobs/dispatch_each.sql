-- -> pending: jobs with different types and options.
-- Lists, one entry per job: $1 ids, $2 inputs, then the columns that unnest names.
insert into forge_jobs
    (id, input, scheduled_at,
     /* generated columns */
     job_type, priority, max_attempts, queue, worker_capability, tenant_id, category,
     correlation_id, auth, traceparent, expires_at, parent_id /* end */)
select id, input::jsonb, coalesce(scheduled_at, now()) + coalesce(delay, '0'),
       /* generated values of each */
       job_type, priority, max_attempts, queue, worker_capability, tenant_id, category,
       correlation_id, auth::jsonb, traceparent, expires_at, parent_id /* end */
from unnest($1::uuid[], $2::text[],
            /* generated lists */
            $3::text[], $4::integer[], $5::integer[], $6::text[], $7::text[], $8::timestamptz[],
            $9::interval[], $10::bigint[], $11::text[], $12::uuid[], $13::text[], $14::text[],
            $15::timestamptz[], $16::uuid[] /* end */)
    as new_job (id, input,
             /* generated names */
             job_type, priority, max_attempts, queue, worker_capability, scheduled_at, delay,
             tenant_id, category, correlation_id, auth, traceparent, expires_at, parent_id /* end */);
