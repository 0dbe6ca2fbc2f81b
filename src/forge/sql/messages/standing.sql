-- The status of jobs whose messages led to no claim, or whose attempts are over.
-- $1 ids, $2 seconds without a heartbeat after which an owner is dead.
select job.id, job.status, job.lease, job.worker_id, job.job_type, job.queue, job.worker_capability,
       greatest(extract(epoch from job.scheduled_at) - extract(epoch from now()), 0)::float8 as due_in,
       exists (select from forge_workers as owner
               where owner.id = job.worker_id
                 and owner.last_heartbeat > now() - make_interval(secs => $2)) as owner_lives,
       exists (select from forge_pauses as pause
               where (pause.type is null or pause.type = job.job_type)
                 and (pause.queue is null or pause.queue = job.queue)
                 and coalesce(pause.until > now(), true)) as is_paused
from forge_jobs as job
where job.id = any ($1::uuid[]);
