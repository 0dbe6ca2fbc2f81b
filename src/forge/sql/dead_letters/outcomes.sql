-- What became of dead letters, and of the jobs that were made of them. $1 ids.
select letter.dlq_id, letter.status, letter.new_job_id, job.status as job_status, job.parent_id
from forge_dead_letters as letter
     left join forge_jobs as job on job.id = any (array[letter.new_job_id])
where letter.dlq_id = any ($1::bigint[])
order by letter.dlq_id;
