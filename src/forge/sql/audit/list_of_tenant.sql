-- A page of the audit events of a tenant, newest first.
-- $1 return events before this id, $2 limit, $3 event, $4 actor, $5 the tenant.
-- The row comparison on (tenant_id, id) forces the tenant's index: with an equality the planner
-- might scan the events of all tenants.
select id, event, actor, tenant_id, job_id, dlq_id, schedule_id, notes, detail, created_at
from forge_audit_events
where tenant_id is not null and (tenant_id, id) < ($5::bigint, $1::bigint) and (tenant_id, id) >= ($5, 0)
  and ($3::text is null or event = $3) and ($4::text is null or actor = $4)
order by tenant_id desc, id desc
limit $2;
