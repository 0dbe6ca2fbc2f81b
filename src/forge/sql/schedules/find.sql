-- The id of a schedule by type ($1), key ($2) and tenant ($3). A null tenant is a value too; each
-- of the two halves uses the index.
select id from forge_schedules where tenant_id = $3::bigint and type = $1 and key = $2
union all
select id from forge_schedules
where tenant_id is null and $3::bigint is null and type = $1 and key = $2;
