-- pending, retry, claimed, running -> cancelled, with an audit event unless a bulk action asks for it.
-- $1 ids, $2 the caller's tenant (null: any), $3 the reason, $4 the actor, $5 the bulk job (null: none).
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
    returning job.id, job.lease, job.tenant_id, asked.status as was, job.worker_id, job.job_type, job.queue
), audited as (
    insert into forge_audit_events (event, actor, tenant_id, job_id, notes)
    select 'job_cancelled', $4, tenant_id, id, $3 from cancelled where $5::uuid is null
), counted as (
    insert into forge_statistics as shared (minute, job_type, queue, cancelled)
    select date_bin('1 minute', now(), '2000-01-01 00:00:00+00'), job_type, queue, count(*)
    from cancelled group by job_type, queue order by job_type, queue
    on conflict (minute, job_type, queue, writer) do update set cancelled = shared.cancelled + excluded.cancelled
), counted_of_tenants as (
    insert into forge_tenant_statistics as shared (minute, tenant_id, cancelled)
    select date_bin('5 minutes', now(), '2000-01-01 00:00:00+00'), tenant_id, count(*)
    from cancelled where tenant_id is not null and queue <> 'forge' group by tenant_id order by tenant_id
    on conflict (tenant_id, minute, writer) do update set cancelled = shared.cancelled + excluded.cancelled
)
select id, lease, tenant_id, was, worker_id from cancelled;
