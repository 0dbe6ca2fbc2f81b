-- Move waiting jobs to another time, with an audit event.
-- $1 ids, $2 the caller's tenant, $3 the reason, $4 the actor, $5 the time (null: now).
with moved as (
    update forge_jobs
    set scheduled_at = coalesce($5::timestamptz, now()), version = version + 1,
        original_scheduled_at = coalesce(original_scheduled_at, scheduled_at)
    where id = any ($1::uuid[]) and status in ('pending', 'retry') and ($2::bigint is null or tenant_id = $2)
    returning id, tenant_id
), audited as (
    insert into forge_audit_events (event, actor, tenant_id, job_id, notes)
    select case when $5 is null then 'job_run_now' else 'job_rescheduled' end, $4, tenant_id, id, $3 from moved
)
select * from moved;
