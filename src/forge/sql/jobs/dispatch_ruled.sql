-- -> pending, once per tenant and idempotency key: jobs of one type with a category, each with its
-- own envelope, which is stored in its columns and in its payload.
-- $1 ids, $2 payloads, $3 keys (null: computed from the payload by the type's rule), $4 tenants, $5
-- correlation ids, $6 payload versions; the other parameters apply to all.
-- Returns for each job, in order, the job that holds its key, and whether that one is new.
with new_jobs as materialized (
    select id, payload, tenant_id, correlation_id, payload_version, place,
           coalesce(key, $7 /* job_type */ || ':' || md5((payload - array['tenant_id', 'correlation_id', 'idempotency_key'])::text)) as key
    from unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::uuid[], $6::text[])
             with ordinality as new_job (id, written, key, tenant_id, correlation_id, payload_version, place)
         cross join lateral (select written::jsonb as payload) as read
), keys as materialized (
    select tenant_id, key, job_id
    from forge_take_keys(array(select tenant_id from new_jobs order by place),
                         array(select key from new_jobs order by place), array(select id from new_jobs order by place))
), dispatched as (
    insert into forge_jobs
        (id, input, idempotency_key, tenant_id, correlation_id, payload_version, scheduled_at,
         /* generated columns */
         job_type, priority, max_attempts, queue, worker_capability, category, auth, traceparent,
         expires_at, retry_of, parent_id, tags, meta /* end */)
    select new_jobs.id, new_jobs.payload || jsonb_build_object('idempotency_key', new_jobs.key), new_jobs.key,
           new_jobs.tenant_id, new_jobs.correlation_id, new_jobs.payload_version,
           coalesce($12 /* scheduled_at */::timestamptz, now()) + coalesce($13 /* delay */::interval, '0'),
           /* generated values */
           $7, $8, $9, $10, $11, $14, $15::text::jsonb, $16, $17, $18, $19, $20, $21::text::jsonb /* end */
    from new_jobs join keys on keys.key = new_jobs.key and keys.tenant_id = new_jobs.tenant_id and keys.job_id = new_jobs.id
    returning id
)
select keys.job_id as id, keys.job_id = new_jobs.id as is_new
from new_jobs join keys using (tenant_id, key)
order by new_jobs.place;
