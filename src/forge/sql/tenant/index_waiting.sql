-- The index for [server] max_pending_per_tenant. Jobs go on while it is built; without the setting
-- it is not there, for every job of a tenant would pay for it.
create index concurrently forge_jobs_tenant_waiting on forge_jobs (tenant_id)
where tenant_id is not null and status in ('pending', 'retry');
