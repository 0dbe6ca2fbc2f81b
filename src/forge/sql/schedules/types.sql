-- The types of the enabled schedules that wait for a run, with how many of each there are. $1 how many of a
-- lane to count at most.
-- One index lookup per lane, as in jobs/survey, and one per counted schedule.
with recursive lanes as (
    (select forge_lane(type, '', worker_capability, priority) as lane, type, worker_capability
     from forge_schedules
     where enabled and running_since is null and next_run_at is not null
     order by forge_lane(type, '', worker_capability, priority), next_run_at, id
     limit 1)
    union all
    select next.*
    from lanes
    cross join lateral (
        select forge_lane(type, '', worker_capability, priority) as lane, type, worker_capability
        from forge_schedules
        where enabled and running_since is null and next_run_at is not null
          and forge_lane(type, '', worker_capability, priority) > lanes.lane
        order by forge_lane(type, '', worker_capability, priority), next_run_at, id
        limit 1) as next
)
select type, worker_capability, sum(counted.schedules)::bigint as enabled
from lanes
cross join lateral (
    select count(*) as schedules
    from (select
          from forge_schedules
          where enabled and running_since is null and next_run_at is not null
            and forge_lane(type, '', worker_capability, priority) = lanes.lane
          limit $1::bigint) as these) as counted
group by type, worker_capability
order by type, worker_capability;
