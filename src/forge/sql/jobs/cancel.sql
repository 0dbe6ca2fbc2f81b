-- pending, retry, claimed, running -> cancelled, with an audit event.
-- $1 ids, $2 the caller's tenant (null: any), $3 the reason, $4 the actor.
-- Returns the cancelled jobs with the worker that must stop each.
with asked as materialized (
    select id, status
    from forge_jobs
    where id = any ($1::uuid[]) and ($2::bigint is null or tenant_id = $2)
      and status = any (array['pending', 'retry', 'claimed', 'running'])
    order by id
    for update
), cancelled as (
    update forge_jobs as job
    set status = 'cancelled', version = job.version + 1, cancelled_at = now(),
        last_error = coalesce($3, job.last_error)
    from asked
    where job.id = any (array[asked.id])
    returning job.id, job.lease, job.tenant_id, asked.status as was, job.worker_id
), audited as (
    insert into forge_audit_events (event, actor, tenant_id, job_id, notes)
    select 'job_cancelled', $4, tenant_id, id, $3 from cancelled
)
select * from cancelled;
