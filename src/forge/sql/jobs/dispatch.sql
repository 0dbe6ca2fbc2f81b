-- -> pending: jobs of one type that share their options.
-- $1 ids, $2 inputs; the rest applies to each.
insert into forge_jobs
    (id, input, job_type, priority, max_attempts, queue, worker_capability, scheduled_at, tenant_id,
     category, correlation_id, payload_version, auth, traceparent, expires_at, retry_of, parent_id,
     tags, meta)
select wish.id, wish.input::jsonb, $3, $4, $5, $6, $7,
       coalesce($8::timestamptz, now()) + coalesce($9::interval, '0'), $10,
       $11, $12, coalesce(forge_payload_version(wish.input::jsonb), $13), $14::text::jsonb, $15, $16, $17, $18, $19, $20::text::jsonb
from unnest($1::uuid[], $2::text[]) as wish (id, input);
