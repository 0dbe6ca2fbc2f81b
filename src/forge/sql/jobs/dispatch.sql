-- -> pending: jobs of one type that share their options.
-- $1 ids, $2 inputs; the other parameters apply to all.
insert into forge_jobs
    (id, input, scheduled_at, payload_version,
     /* generated columns */
     job_type, priority, max_attempts, queue, worker_capability, tenant_id, category,
     correlation_id, auth, traceparent, expires_at, retry_of, parent_id, tags, meta /* end */)
select new_job.id, new_job.input::jsonb,
       coalesce($8 /* scheduled_at */::timestamptz, now()) + coalesce($9 /* delay */::interval, '0'),
       coalesce(forge_payload_version(new_job.input::jsonb), $13 /* payload_version */),
       /* generated values */
       $3, $4, $5, $6, $7, $10, $11, $12, $14::text::jsonb, $15, $16, $17, $18, $19,
       $20::text::jsonb /* end */
from unnest($1::uuid[], $2::text[]) as new_job (id, input);
