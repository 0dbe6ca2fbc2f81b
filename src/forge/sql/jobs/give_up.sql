-- retry -> failed: a person does not want it tried again. $1 ids, $2 the tenant that asks.
update forge_jobs
set status = 'failed', failed_at = now()
where id = any ($1::uuid[]) and status = 'retry' and ($2::bigint is null or tenant_id = $2)
returning id, tenant_id;
