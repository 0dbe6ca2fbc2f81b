-- How many jobs a tenant has by status and type, among its newest. $1 how many to look at,
-- $2 the tenant. Bounded from both sides and ordered: an equation would let the planner walk
-- through everybody's rows.
select status, job_type, count(*) as count
from (select status, job_type from forge_jobs
      where tenant_id between $2::bigint and $2
      order by tenant_id desc, id desc
      limit $1::bigint) as newest
group by status, job_type;
