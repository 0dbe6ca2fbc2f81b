-- How many jobs are due in each lane, and for how many seconds the first of them has been due.
-- $1 how many jobs of a lane to count at most.
-- One index lookup per lane, and one per counted job.
with recursive lanes as (
    (select forge_lane(job_type, queue, worker_capability, priority) as lane,
            job_type, queue, worker_capability, scheduled_at
     from forge_jobs
     where status in ('pending', 'retry')
     order by forge_lane(job_type, queue, worker_capability, priority), scheduled_at, id
     limit 1)
    union all
    select next.*
    from lanes
    cross join lateral (
        select forge_lane(job_type, queue, worker_capability, priority) as lane,
               job_type, queue, worker_capability, scheduled_at
        from forge_jobs
        where status in ('pending', 'retry')
          and forge_lane(job_type, queue, worker_capability, priority) > lanes.lane
        order by forge_lane(job_type, queue, worker_capability, priority), scheduled_at, id
        limit 1) as next
)
select job_type, queue, worker_capability, due.count,
       extract(epoch from now() - scheduled_at)::float8 as oldest
from lanes
cross join lateral (
    select count(*) as count
    from (select
          from forge_jobs
          where status in ('pending', 'retry')
            and forge_lane(job_type, queue, worker_capability, priority) = lanes.lane
            and scheduled_at <= now()
          order by scheduled_at, id
          limit $1::bigint) as counted) as due
where scheduled_at <= now();
