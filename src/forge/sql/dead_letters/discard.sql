-- Close the review of dead letters without new jobs, with an audit event unless a bulk action asks for it.
-- $1 their ids, $2 the caller's tenant (null: any), $3 actor, $4 notes, $5 the request job that
-- discards them (null: a person). Returns those that were under review.
with locked as materialized (
    -- By id alone: a million letters may have that status, and only the status of a locked row is current.
    select letter.*
    from (select unnest($1::bigint[]) as dlq_id order by 1) as wanted
         cross join lateral (select * from forge_dead_letters as letter
                             where letter.dlq_id = wanted.dlq_id and ($2::bigint is null or letter.tenant_id = $2)
                             for update) as letter
), discarded as (
    update forge_dead_letters as letter
    set status = 'discarded', reviewed_at = now(), reviewed_by = $3, notes = $4, request_id = $5::uuid
    from locked
    where letter.dlq_id = any (array[locked.dlq_id]) and locked.status = 'pending_review'
    returning letter.dlq_id, letter.job_id, letter.tenant_id
), audited as (
    insert into forge_audit_events (event, actor, tenant_id, job_id, dlq_id, notes)
    select 'job_dlq_discarded', $3, tenant_id, job_id, dlq_id, $4 from discarded where $5::uuid is null
)
select dlq_id from discarded;
