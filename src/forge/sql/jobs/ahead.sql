-- The position of a waiting job in its lane: how many jobs are ahead of it, in how many seconds it is
-- due, and the time now.
-- $1 the job, $2 how many to count at most.
select job.status, now() as now,
       (extract(epoch from job.scheduled_at) - extract(epoch from now()))::float8 as due_in,
       (select count(*)
        from forge_lane_jobs(forge_lane(job.job_type, job.queue, job.worker_capability, job.priority),
                             job.scheduled_at, job.id, $2::bigint)) as ahead
from forge_jobs as job
where job.id = $1;
