-- Erase final jobs with their records. $1 ids, $2 the tenant that asks. A dead letter under review
-- keeps its job. Returns the erased ids.
with erased as (
    delete from forge_jobs
    where id = any ($1::uuid[]) and ($2::bigint is null or tenant_id = $2)
      and status = any (array['completed', 'failed', 'dead_letter', 'cancelled'])
      and not exists (select from forge_dead_letters as letter
                      where letter.job_id = any (array[forge_jobs.id]) and letter.status = 'pending_review')
    returning id, tenant_id, job_type, status
), attempts as (
    delete from forge_attempts where job_id = any (array(select id from erased))
)
select * from erased;
