-- From now on this session acts for a tenant: row security shows it that tenant's rows alone.
-- $1 the tenant.
select set_config('forge.tenant_id', $1::bigint::text, false);
