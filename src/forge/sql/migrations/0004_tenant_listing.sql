-- A tenant's own jobs, the newest first, among any number of others'. Jobs without a tenant are not
-- in it and cost nothing; for the others dispatch and drain write about a quarter more log.
create index forge_jobs_tenant on forge_jobs (tenant_id, id) where tenant_id is not null;
