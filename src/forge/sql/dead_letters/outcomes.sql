-- The state of dead letters and of the jobs that reprocessing created from them. $1 ids.
-- `has_failed` is true if an attempt failed, even where the job will be retried: `attempts` counts
-- claims that were not released, and one of them is running or has succeeded.
select letter.dlq_id, letter.status, letter.new_job_id, letter.request_id, job.status as job_status,
       coalesce(job.lone_crashes > 0
                or job.attempts > (job.status in ('claimed', 'running', 'completed'))::integer, false) as has_failed
from forge_dead_letters as letter
     left join forge_jobs as job on job.id = any (array[letter.new_job_id])
where letter.dlq_id = any ($1::bigint[])
order by letter.dlq_id;
