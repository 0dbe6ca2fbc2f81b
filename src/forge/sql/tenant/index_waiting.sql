-- Build the index for [server] max_pending_per_tenant while jobs continue. It exists only with that
-- setting, because every job of a tenant pays for it.
create index concurrently forge_jobs_tenant_waiting on forge_jobs (tenant_id)
where tenant_id is not null and status in ('pending', 'retry');
