-- How many jobs of a tenant match, among its newest. $1 to $6 as in jobs/count_matching, $7 the tenant.
-- Bounded from both sides and ordered: an equation would let the planner walk through everybody's rows.
select count(*) filter (where ($2::text[] is null or status = any ($2)) and ($3::text is null or job_type = $3)
                          and ($4::integer is null or priority = $4) and ($5::text is null or category = $5)
                          and ($6::uuid is null or correlation_id = $6)) as matching,
       count(*) as looked_at
from (select status, job_type, priority, category, correlation_id
      from forge_jobs
      where tenant_id between $7::bigint and $7
      order by tenant_id desc, id desc
      limit $1::bigint) as newest;
