-- Act for a caller until the end of the transaction. $1 the caller.
select set_config('forge.tenant_id', $1, true);
