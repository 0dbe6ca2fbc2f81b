-- From now on this session acts for a caller: row security shows it that caller's rows alone.
-- $1 the caller, as forge_caller() reads it.
select set_config('forge.tenant_id', $1, false);
