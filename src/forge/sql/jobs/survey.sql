-- Each lane with a waiting job, and the time until its first job is due: that of a paused lane is
-- due when the pause ends, or never.
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
       greatest(extract(epoch from scheduled_at) - extract(epoch from now()), paused.seconds, 0)::float8 as due_in,
       extract(epoch from scheduled_at)::float8 as head
from lanes
cross join lateral (
    select max(extract(epoch from coalesce(until, 'infinity')) - extract(epoch from now())) as seconds
    from forge_pauses as pause
    where (pause.type is null or pause.type = lanes.job_type)
      and (pause.queue is null or pause.queue = lanes.queue)) as paused;
