-- Each lane with a waiting job, and the time until its first job is due.
-- One index lookup per lane, however many jobs wait in it.
-- Subtracts epochs, because before PostgreSQL 17 an infinite timestamp cannot be subtracted.
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
