-- Schedules by id. $1 the ids, $2 only this tenant's (null: any).
select * from forge_schedules
where id = any ($1::uuid[]) and ($2::bigint is null or tenant_id = $2);
