-- What was asked for by or for a tenant, the latest first, a page at a time. $1 the id before which to look,
-- $2 how many, $3 event, $4 actor, $5 the tenant. Compared as pairs: an equation would let the planner
-- walk through everybody's events.
select id, event, actor, tenant_id, job_id, dlq_id, schedule_id, notes, detail, created_at
from forge_audit_events
where tenant_id is not null and (tenant_id, id) < ($5::bigint, $1::bigint) and (tenant_id, id) >= ($5, 0)
  and ($3::text is null or event = $3) and ($4::text is null or actor = $4)
order by tenant_id desc, id desc
limit $2;
