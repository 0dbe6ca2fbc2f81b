-- Act for a caller from now on: row security shows this session only that caller's rows.
-- $1 the caller, as forge_caller() reads it.
select set_config('forge.tenant_id', $1, false);
