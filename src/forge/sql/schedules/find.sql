-- The id of a schedule by its name. $1 type, $2 key, $3 tenant: a null one is a tenant, too, and
-- each of the two halves goes by index.
select id from forge_schedules where tenant_id = $3::bigint and type = $1 and key = $2
union all
select id from forge_schedules
where tenant_id is null and $3::bigint is null and type = $1 and key = $2;
