-- -> pending, once per tenant and key: jobs of one type with a category, each with an envelope of
-- its own, which is stored in its columns and in its payload.
-- $1 ids, $2 payloads, $3 keys (null: made of the payload, as the type wants it), $4 tenants,
-- $5 correlation ids, $6 payload versions; the rest applies to each.
-- Returns for each wish, in its order, the job that its key stands for, and whether that is new.
with wishes as materialized (
    select id, payload, tenant_id, correlation_id, payload_version, place,
           coalesce(key, $7 || ':' || md5((payload - array['tenant_id', 'correlation_id', 'idempotency_key'])::text)) as key
    from unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::uuid[], $6::text[])
             with ordinality as wish (id, written, key, tenant_id, correlation_id, payload_version, place)
         cross join lateral (select written::jsonb as payload) as read
), keys as materialized (
    select tenant_id, key, job_id
    from forge_take_keys(array(select tenant_id from wishes order by place),
                         array(select key from wishes order by place), array(select id from wishes order by place))
), dispatched as (
    insert into forge_jobs
        (id, input, idempotency_key, tenant_id, correlation_id, payload_version, job_type, priority,
         max_attempts, queue, worker_capability, scheduled_at, category, auth, traceparent,
         expires_at, retry_of, parent_id, tags, meta)
    select wishes.id, wishes.payload || jsonb_build_object('idempotency_key', wishes.key), wishes.key,
           wishes.tenant_id, wishes.correlation_id, wishes.payload_version, $7, $8, $9, $10, $11,
           coalesce($12::timestamptz, now()) + coalesce($13::interval, '0'), $14,
           $15::text::jsonb, $16, $17, $18, $19, $20, $21::text::jsonb
    from wishes join keys on keys.key = wishes.key and keys.tenant_id = wishes.tenant_id and keys.job_id = wishes.id
    returning id
)
select keys.job_id as id, keys.job_id = wishes.id as is_new
from wishes join keys using (tenant_id, key)
order by wishes.place;
