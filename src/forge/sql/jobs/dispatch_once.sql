-- -> pending, once per idempotency key: jobs of one type that share their options, each with its
-- own key.
-- $1 ids, $2 inputs, $3 keys (null: computed from the input by the type's rule); the other
-- parameters apply to all.
-- Returns for each job, in order, the job that holds its key, and whether that one is new.
with new_jobs as materialized (
    select id, input::jsonb as input, place,
           coalesce(key, $4 /* job_type */ || ':' || md5(input::jsonb::text)) as key
    from unnest($1::uuid[], $2::text[], $3::text[]) with ordinality as new_job (id, input, key, place)
), keys as materialized (
    select key, job_id
    from forge_take_keys(array(select $11 /* tenant_id */::bigint from new_jobs),
                         array(select key from new_jobs order by place), array(select id from new_jobs order by place))
), dispatched as (
    insert into forge_jobs
        (id, input, idempotency_key, scheduled_at, payload_version,
         /* generated columns */
         job_type, priority, max_attempts, queue, worker_capability, tenant_id, category,
         correlation_id, auth, traceparent, expires_at, retry_of, parent_id, tags, meta /* end */)
    select new_jobs.id, new_jobs.input, new_jobs.key,
           coalesce($9 /* scheduled_at */::timestamptz, now()) + coalesce($10 /* delay */::interval, '0'),
           coalesce(forge_payload_version(new_jobs.input), $14 /* payload_version */),
           /* generated values */
           $4, $5, $6, $7, $8, $11, $12, $13, $15::text::jsonb, $16, $17, $18, $19, $20,
           $21::text::jsonb /* end */
    from new_jobs join keys on keys.key = new_jobs.key and keys.job_id = new_jobs.id
    returning id
)
select keys.job_id as id, keys.job_id = new_jobs.id as is_new
from new_jobs join keys using (key)
order by new_jobs.place;
