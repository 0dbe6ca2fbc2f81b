-- Delete final jobs with their records, with an audit event unless a bulk action asks for it.
-- $1 ids, $2 the caller's tenant, $3 the reason, $4 the actor, $5 the bulk job (null: none). A job whose
-- dead letter is under review is kept. Returns the deleted ids.
with erased as (
    delete from forge_jobs
    where id = any ($1::uuid[]) and ($2::bigint is null or tenant_id = $2)
      and status = any (array['completed', 'failed', 'dead_letter', 'cancelled'])
      and not exists (select from forge_dead_letters as letter
                      where letter.job_id = any (array[forge_jobs.id]) and letter.status = 'pending_review')
    returning id, tenant_id, job_type, status
), attempts as (
    delete from forge_attempts where job_id = any (array(select id from erased))
), logs as (
    delete from forge_attempt_logs where job_id = any (array(select id from erased))
), audited as (
    insert into forge_audit_events (event, actor, tenant_id, job_id, notes)
    select 'job_deleted', $4, tenant_id, id, $3 from erased where $5::uuid is null
)
select * from erased;
