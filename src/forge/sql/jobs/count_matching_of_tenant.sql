-- How many of a tenant's newest jobs match. $1 to $9 as in jobs/count_matching, $10 the tenant.
-- The range on tenant_id with an order forces the tenant's index: with an equality the planner
-- might scan the rows of all tenants.
select count(*) filter (where ($2::text[] is null or status = any ($2)) and ($3::text is null or job_type = $3)
                          and ($4::integer is null or priority = $4) and ($5::text is null or category = $5)
                          and ($6::uuid is null or correlation_id = $6) and ($7::text is null or queue = $7)
                          and ($8::text is null or error_class = $8)
                          and ($9::text is null or idempotency_key = $9)) as matching,
       count(*) as looked_at
from (select status, job_type, priority, category, correlation_id, queue, error_class, idempotency_key
      from forge_jobs
      where tenant_id between $10::bigint and $10
      order by tenant_id desc, id desc
      limit $1::bigint) as newest;
