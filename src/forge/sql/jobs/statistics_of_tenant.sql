-- How many of a tenant's newest $1 jobs there are by status, category, type and error class. $2 the
-- tenant.
-- The range on tenant_id forces the tenant's index: with an equality the planner might scan the
-- rows of all tenants.
select status, category, job_type, error_class, count(*) as letters
from (select status, category, job_type, error_class
      from forge_jobs where tenant_id between $2::bigint and $2
      order by tenant_id desc, id desc limit $1) as newest
group by status, category, job_type, error_class;
