-- The newest lines of a job's attempts, the newest first. $1 the job, $2 how many.
-- The attempts one after another, so that no more than one attempt is sorted beyond the limit.
select lease, kind, number, at, level, message, fields, percent
from forge_attempt_logs
where job_id = $1
order by lease desc, at desc, number desc
limit $2;
