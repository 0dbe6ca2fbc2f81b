-- Each lane with a schedule to run, and the time until its first one is due: that of a paused type
-- is due when the pause ends, or never.
-- One index lookup per lane, as in jobs/survey.
with recursive lanes as (
    (select forge_lane(type, '', worker_capability, priority) as lane,
            type, worker_capability, next_run_at
     from forge_schedules
     where enabled and running_since is null and next_run_at is not null
     order by forge_lane(type, '', worker_capability, priority), next_run_at, id
     limit 1)
    union all
    select next.*
    from lanes
    cross join lateral (
        select forge_lane(type, '', worker_capability, priority) as lane,
               type, worker_capability, next_run_at
        from forge_schedules
        where enabled and running_since is null and next_run_at is not null
          and forge_lane(type, '', worker_capability, priority) > lanes.lane
        order by forge_lane(type, '', worker_capability, priority), next_run_at, id
        limit 1) as next
)
select lane, type as job_type, '' as queue, worker_capability,
       greatest(extract(epoch from next_run_at) - extract(epoch from now()), paused.seconds, 0)::float8 as due_in,
       extract(epoch from next_run_at)::float8 as head
from lanes
cross join lateral (
    select max(extract(epoch from coalesce(until, 'infinity')) - extract(epoch from now())) as seconds
    from forge_pauses as pause
    where pause.type = lanes.type and pause.queue is null) as paused;
