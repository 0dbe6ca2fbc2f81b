-- Drop the index for [server] max_pending_per_tenant, whose build was interrupted.
drop index concurrently if exists forge_jobs_tenant_waiting;
