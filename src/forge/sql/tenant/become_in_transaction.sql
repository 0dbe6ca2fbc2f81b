-- Until the end of its transaction this session acts for a tenant. $1 the tenant.
select set_config('forge.tenant_id', $1::bigint::text, true);
