-- -> pending, once per key: jobs of one type that share their options, each with a key of its own.
-- $1 ids, $2 inputs, $21 keys (null: made of the input, as the type wants it).
-- Returns for each wish, in its order, the job that its key stands for, and whether that is new.
with wishes as materialized (
    select id, input::jsonb as input, place,
           coalesce(key, $3 || ':' || md5(input::jsonb::text)) as key
    from unnest($1::uuid[], $2::text[], $21::text[]) with ordinality as wish (id, input, key, place)
), keys as materialized (
    select key, job_id
    from forge_take_keys(array(select $10::bigint from wishes), array(select key from wishes order by place),
                         array(select id from wishes order by place))
), dispatched as (
    insert into forge_jobs
        (id, input, idempotency_key, job_type, priority, max_attempts, queue, worker_capability,
         scheduled_at, tenant_id, category, correlation_id, payload_version, auth, traceparent,
         expires_at, retry_of, parent_id, tags, meta)
    select wishes.id, wishes.input, wishes.key, $3, $4, $5, $6, $7,
           coalesce($8::timestamptz, now()) + coalesce($9::interval, '0'), $10,
           $11, $12, coalesce(forge_payload_version(wishes.input), $13), $14::text::jsonb, $15, $16, $17, $18, $19, $20::text::jsonb
    from wishes join keys on keys.key = wishes.key and keys.job_id = wishes.id
    returning id
)
select keys.job_id as id, keys.job_id = wishes.id as is_new
from wishes join keys using (key)
order by wishes.place;
