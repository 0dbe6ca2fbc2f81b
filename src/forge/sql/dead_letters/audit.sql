-- Record what was requested for dead letters, or why it was not done.
-- $1 event, $2 their ids, $3 actor, $4 notes, $5 detail.
insert into forge_audit_events (event, actor, tenant_id, job_id, dlq_id, notes, detail)
select $1, $3, tenant_id, job_id, dlq_id, $4, $5::text::jsonb
from forge_dead_letters
where dlq_id = any ($2::bigint[])
order by dlq_id
returning id;
