-- The attempts of a job that failed, the first one first.
select * from forge_attempts where job_id = $1 order by lease;
