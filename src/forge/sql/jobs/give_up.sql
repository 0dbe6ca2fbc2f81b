-- retry -> failed: a person stops the retries, with an audit event.
-- $1 ids, $2 the caller's tenant, $3 the reason, $4 the actor.
with given_up as (
    update forge_jobs
    set status = 'failed', version = version + 1, failed_at = now()
    where id = any ($1::uuid[]) and status = 'retry' and ($2::bigint is null or tenant_id = $2)
    returning id, tenant_id
), audited as (
    insert into forge_audit_events (event, actor, tenant_id, job_id, notes)
    select 'job_given_up', $4, tenant_id, id, $3 from given_up
)
select * from given_up;
