-- Where work stands: each lane that has a waiting job, with the time until its first is due.
-- One step of an index per lane, however long the lines are.
-- Epochs are subtracted, since before PostgreSQL 17 a time of infinity cannot be.
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
select lane, job_type, queue, worker_capability,
       greatest(extract(epoch from scheduled_at) - extract(epoch from now()), 0)::float8 as due_in,
       extract(epoch from scheduled_at)::float8 as head
from lanes;
