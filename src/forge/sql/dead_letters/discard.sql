-- Close the review of a dead letter without a new job.
-- $1 its id, $2 the caller's tenant (null: any), $3 actor, $4 notes. Returns it if it was under
-- review.
with locked as materialized (
    -- By id alone: a million letters may have that status, and only the status of a locked row is current.
    select * from forge_dead_letters
    where dlq_id = $1 and ($2::bigint is null or tenant_id = $2)
    for update
), discarded as (
    update forge_dead_letters as letter
    set status = 'discarded', reviewed_at = now(), reviewed_by = $3, notes = $4
    from locked
    where letter.dlq_id = any (array[locked.dlq_id]) and locked.status = 'pending_review'
    returning letter.dlq_id, letter.job_id, letter.tenant_id
), audited as (
    insert into forge_audit_events (event, actor, tenant_id, job_id, dlq_id, notes)
    select 'job_dlq_discarded', $3, tenant_id, job_id, dlq_id, $4 from discarded
)
select dlq_id from discarded;
