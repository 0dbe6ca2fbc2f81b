-- Whether the index for [server] max_pending_per_tenant is there: null if not, false if not valid.
select indisvalid from pg_catalog.pg_index
where indexrelid = to_regclass('forge_jobs_tenant_waiting');
