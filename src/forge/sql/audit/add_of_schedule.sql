-- Record who did what to which schedule, and why.
-- $1 event, $2 actor, $3 tenant, $4 the schedule, $5 a note, $6 details.
insert into forge_audit_events (event, actor, tenant_id, schedule_id, notes, detail)
values ($1, $2, $3, $4, $5, $6::jsonb)
returning id;
