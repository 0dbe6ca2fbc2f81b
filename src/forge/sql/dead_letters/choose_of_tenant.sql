-- The next dead letters of a tenant under review, oldest first.
-- $1 to $3 as in dead_letters/choose, $4 the tenant.
select dlq_id
from forge_dead_letters
where tenant_id is not null
  and (tenant_id, status, dlq_id) > ($4::bigint, 'pending_review', $1::bigint)
  and (tenant_id, status, dlq_id) <= ($4, 'pending_review', $2::bigint)
order by tenant_id, status, dlq_id
limit $3;
