-- The index for [server] max_pending_per_tenant, if it exists: whether it is complete, and whether
-- a session is building it.
select index.indisvalid as is_complete,
    exists (
        select from pg_catalog.pg_stat_progress_create_index progress
        where progress.index_relid = index.indexrelid
    ) as is_being_built
from pg_catalog.pg_index index
where index.indexrelid = to_regclass('forge_jobs_tenant_waiting');
