-- $1 jobs of 20 types and 1,000 tenants, pending.
insert into forge_jobs (job_type, category, tenant_id)
select 'type_' || n % 20, case when n % 2 = 0 then 'sync' end, n % 1000
from generate_series(1, $1::bigint) as n
