-- A page of audit events, newest first.
-- $1 return events before this id, $2 limit, $3 event, $4 actor, $5 tenant (null: any).
select id, event, actor, tenant_id, job_id, dlq_id, schedule_id, notes, detail, created_at
from forge_audit_events
where ($5::bigint is null or tenant_id = $5)
  and ($3::text is null or event = $3) and ($4::text is null or actor = $4)
  and id < $1::bigint
order by id desc
limit $2;
