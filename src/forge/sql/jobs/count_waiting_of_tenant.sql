-- How many jobs of a tenant wait. $1 the tenant, $2 how many to count at most.
-- Null where the index is missing or invalid: without it the statement would read every job that
-- the tenant ever had. For the range with an order see jobs/count_newest_of_tenant.
select case
    when exists (select from pg_catalog.pg_index
                 where indexrelid = to_regclass('forge_jobs_tenant_waiting') and indisvalid)
    then (select count(*)
          from (select from forge_jobs
                where tenant_id between $1::bigint and $1 and status in ('pending', 'retry')
                order by tenant_id
                limit $2::bigint) as waiting)
end as count;
