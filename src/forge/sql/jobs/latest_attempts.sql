-- The newest failed attempts of a job, the newest first. $1 the job, $2 how many, $3 how many of them
-- with their trace.
select job_id, lease, attempt, tenant_id, worker_id, outcome, error_class, exception, error,
       case when row_number() over (order by lease desc) <= $3 then trace end as trace,
       claimed_at, started_at, ended_at, retry_at
from forge_attempts
where job_id = $1
order by lease desc
limit $2;
