-- How many of a tenant's newest jobs there are by status and type. $1 how many to read, $2 the
-- tenant.
-- The range on tenant_id with an order forces the tenant's index: with an equality the planner
-- might scan the rows of all tenants.
select status, job_type, count(*) as count
from (select status, job_type from forge_jobs
      where tenant_id between $2::bigint and $2
      order by tenant_id desc, id desc
      limit $1::bigint) as newest
group by status, job_type;
