-- Move waiting jobs to another time. $1 ids, $2 the tenant that asks, $3 the time (null: now).
update forge_jobs
set scheduled_at = coalesce($3::timestamptz, now())
where id = any ($1::uuid[]) and status in ('pending', 'retry') and ($2::bigint is null or tenant_id = $2)
returning id, tenant_id;
