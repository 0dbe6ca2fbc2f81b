-- The failed attempts of a job, oldest first.
select * from forge_attempts where job_id = $1 order by lease;
