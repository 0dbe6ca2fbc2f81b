-- $1 jobs as a busy application leaves them, dispatched one per 200 ms until now, the newest last. Most
-- completed, one in 200 failed; of the newest 200,000 half wait, and 100 are running. A third belong to tenant
-- 1, one in 10,000 to tenant 7.
select (lpad(to_hex(extract(epoch from born)::bigint * 1000 + n % 1000), 12, '0')
        || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid as id,
       case when $1 - n < 200000 and n % 2 = 0 then 'pending'
            when $1 - n < 200 then 'running'
            when n % 200 = 0 then (array['failed', 'dead_letter', 'cancelled'])[n / 200 % 3 + 1]
            else 'completed' end as status,
       case when $1 - n < 200000 and n % 2 = 0 then null else lpad(to_hex(n % 50), 32, '0')::uuid end as worker_id,
       (not ($1 - n < 200000 and n % 2 = 0))::int as attempts,
       (not ($1 - n < 200000 and n % 2 = 0))::int::bigint as lease,
       'type_' || n % 20 as job_type,
       case when n % 7 = 0 then 'mail' else 'default' end as queue,
       jsonb_build_object('order_id', n, 'text', 'a short text') as input,
       case when n % 3 = 0 then 1 when n % 10000 = 1 then 7 end::bigint as tenant_id,
       case when n % 2 = 0 then 'sync' end as category,
       case when n % 10 = 0 then lpad(to_hex(n % 1000000), 32, '0')::uuid end as correlation_id,
       case when n % 20 = 0 then lpad(to_hex(n % 7000), 32, '0')::uuid end as parent_id,
       case when n % 5000 = 0 then lpad(to_hex(n - 1), 32, '0')::uuid end as retry_of,
       case when n % 50 = 0 then 'key ' || n end as idempotency_key,
       born as created_at, born as scheduled_at
from generate_series(1::bigint, $1) as n,
     lateral (select date_trunc('second', now()) - ($1 - n) * interval '200 milliseconds' as born) as time
