-- Give waiting jobs another priority, with an audit event unless a bulk action asks for it. Built-in
-- jobs and those that have it already are left out.
-- $1 ids, $2 the caller's tenant (null: any), $3 the reason, $4 the actor, $5 the priority, $6 the bulk
-- job (null: none).
with asked as materialized (
    select id, priority
    from forge_jobs
    where id = any ($1::uuid[]) and status = any (array['pending', 'retry']) and ($2::bigint is null or tenant_id = $2)
      and queue <> 'forge' and priority <> $5
    order by id
    for update
), reprioritised as (
    update forge_jobs as job
    set priority = $5, version = job.version + 1
    from asked
    where job.id = any (array[asked.id])
    returning job.id, job.tenant_id, asked.priority as was, job.scheduled_at
), audited as (
    insert into forge_audit_events (event, actor, tenant_id, job_id, notes, detail)
    select 'job_reprioritised', $4, tenant_id, id, $3, jsonb_build_object('priority', $5::integer, 'was', was)
    from reprioritised
    where $6::uuid is null
), announced as (
    -- the message that was sent, if one was, is in the queue of the old lane
    update forge_outbox as message
    set send_at = greatest(reprioritised.scheduled_at - interval '15 minutes', now()), sends = 0
    from reprioritised
    where message.job_id = any (array[reprioritised.id])
)
select id, tenant_id from reprioritised;
