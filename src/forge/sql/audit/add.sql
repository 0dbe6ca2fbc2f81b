-- Record who did what to which job, and why.
insert into forge_audit_events (event, actor, tenant_id, job_id, notes, detail)
values ($1, $2, $3, $4, $5, $6::jsonb)
returning id;
