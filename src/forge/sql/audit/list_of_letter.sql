-- A page of the audit events of a dead letter, newest first.
-- $1 return events before this id, $2 limit, $3 event, $4 actor, $5 tenant (null: any), $6 its id.
select id, event, actor, tenant_id, job_id, dlq_id, schedule_id, notes, detail, created_at
from forge_audit_events
where dlq_id = $6::bigint and ($5::bigint is null or tenant_id = $5)
  and ($3::text is null or event = $3) and ($4::text is null or actor = $4)
  and id < $1::bigint
order by id desc
limit $2;
