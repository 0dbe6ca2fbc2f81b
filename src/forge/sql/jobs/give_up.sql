-- retry -> failed: a person stops the retries, with an audit event unless a bulk action asks for it.
-- $1 ids, $2 the caller's tenant, $3 the reason, $4 the actor, $5 the bulk job (null: none).
with given_up as (
    update forge_jobs
    set status = 'failed', version = version + 1, failed_at = now()
    where id = any ($1::uuid[]) and status = any (array['retry']) and ($2::bigint is null or tenant_id = $2)
    returning id, tenant_id, job_type, queue
), audited as (
    insert into forge_audit_events (event, actor, tenant_id, job_id, notes)
    select 'job_given_up', $4, tenant_id, id, $3 from given_up where $5::uuid is null
), counted as (
    insert into forge_statistics as shared (minute, job_type, queue, failed)
    select date_bin('1 minute', now(), '2000-01-01 00:00:00+00'), job_type, queue, count(*)
    from given_up group by job_type, queue order by job_type, queue
    on conflict (minute, job_type, queue, writer) do update set failed = shared.failed + excluded.failed
), counted_of_tenants as (
    insert into forge_tenant_statistics as shared (minute, tenant_id, failed)
    select date_bin('5 minutes', now(), '2000-01-01 00:00:00+00'), tenant_id, count(*)
    from given_up where tenant_id is not null and queue <> 'forge' group by tenant_id order by tenant_id
    on conflict (tenant_id, minute, writer) do update set failed = shared.failed + excluded.failed
)
select id, tenant_id from given_up;
