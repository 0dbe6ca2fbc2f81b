-- How many jobs a tenant has by status, category, type and error class, of the newest $1. $2 the
-- tenant. Bounded from both sides: an equation would let the planner walk through everybody's rows.
select status, category, job_type, error_class, count(*) as letters
from (select status, category, job_type, error_class
      from forge_jobs where tenant_id between $2::bigint and $2
      order by tenant_id desc, id desc limit $1) as newest
group by status, category, job_type, error_class;
