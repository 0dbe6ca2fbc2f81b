-- Give waiting jobs another time, with an audit event unless a bulk action asks for it. Those that have
-- it already are left out.
-- $1 ids, $2 the caller's tenant (null: any), $3 the reason, $4 the actor, $5 the time, or $6 the delay
-- from now (neither: now), $7 the bulk job (null: none).
with rescheduled as (
    update forge_jobs
    set scheduled_at = coalesce($5::timestamptz, now() + coalesce($6::interval, '0')), version = version + 1,
        original_scheduled_at = coalesce(original_scheduled_at, scheduled_at)
    where id = any ($1::uuid[]) and status = any (array['pending', 'retry']) and ($2::bigint is null or tenant_id = $2)
      and scheduled_at is distinct from $5
    returning id, tenant_id, scheduled_at
), audited as (
    insert into forge_audit_events (event, actor, tenant_id, job_id, notes, detail)
    select case when $5 is null and $6 is null then 'job_run_now' else 'job_rescheduled' end, $4, tenant_id, id, $3,
           case when $5 is not null or $6 is not null then jsonb_build_object('scheduled_at', scheduled_at) end
    from rescheduled
    where $7::uuid is null
)
select id, tenant_id from rescheduled;
