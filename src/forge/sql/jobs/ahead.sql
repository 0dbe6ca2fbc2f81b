-- The position of a waiting job in its lane: how many jobs are ahead of it, in how many seconds it is
-- due, and the time now.
-- $1 the job, $2 how many to count at most.
select job.status, now() as now,
       (extract(epoch from job.scheduled_at) - extract(epoch from now()))::float8 as due_in,
       (select count(*)
        from (select
              from forge_jobs
              where status in ('pending', 'retry')
                and forge_lane(job_type, queue, worker_capability, priority)
                    = forge_lane(job.job_type, job.queue, job.worker_capability, job.priority)
                and (scheduled_at, id) < (job.scheduled_at, job.id)
              order by scheduled_at, id
              limit $2::bigint) as before) as ahead
from forge_jobs as job
where job.id = $1;
