-- A page of jobs, newest first.
-- $1 statuses, $2 type, $3 queue, $4 return jobs before this id (null: from the newest), $5 limit.
-- Null means any.
-- Returns the input where an error or a message may quote a secret in it.
select id, job_type, status, priority, attempts, max_attempts, queue, tenant_id, progress_percent,
       progress_message, last_error, scheduled_at, created_at, started_at, completed_at, failed_at,
       cancelled_at,
       case when progress_message is not null or last_error is not null then input end as input
from forge_jobs
where ($1::text[] is null or status = any ($1)) and ($2::text is null or job_type = $2)
  and ($3::text is null or queue = $3) and ($4::uuid is null or id < $4)
order by id desc
limit $5;
