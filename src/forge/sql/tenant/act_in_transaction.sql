-- Until the end of its transaction this session acts for a caller. $1 the caller.
select set_config('forge.tenant_id', $1, true);
