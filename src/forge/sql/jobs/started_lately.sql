-- How many seconds ago jobs of the same lane were last started, latest first.
-- $1 a job, $2 how many jobs to read: those created just before the jobs at the head of the lane,
-- which were started last.
with job as (
    select *, forge_lane(job_type, queue, worker_capability, priority) as lane
    from forge_jobs where id = $1
), head as (
    select max(waiting.id::text)::uuid as id
    from job
    cross join lateral forge_lane_jobs(job.lane, 'infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 10) as waiting
)
select greatest(extract(epoch from clock_timestamp() - lately.started_at), 0)::float8 as ago
from job, head
cross join lateral (
    select *
    from forge_jobs
    where id < head.id
    order by id desc
    limit $2::bigint) as lately
where lately.started_at is not null
  and forge_lane(lately.job_type, lately.queue, lately.worker_capability, lately.priority) = job.lane
order by lately.started_at desc;
