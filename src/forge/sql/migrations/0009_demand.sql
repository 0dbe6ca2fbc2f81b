-- How much work waits, for autoscalers: docs/howto/kubernetes.md.

-- The jobs of one queue (null: of all queues) that are due, that run, and that become due within
-- `ahead`; schedules count as soon as they are due within it. `slots` is how many slots the work can
-- use: it is 0 only if nothing is due soon, so that workers can be scaled to zero.
-- Work that is paused does not count, until its pause ends within `ahead`.
-- Counts at most 10,000 jobs per lane: one index lookup per lane, and one per counted job.
-- Runs as its owner and returns no rows of jobs, so that an autoscaler's login needs no other right.
create function forge_demand(queue text default null, ahead interval default '1 minute', with_schedules boolean default true)
    returns table (ready bigint, running bigint, soon bigint, oldest_seconds float8, slots bigint)
    language sql stable security definer as $$
with recursive lanes as (
    (select forge_lane(job_type, queue, worker_capability, priority) as lane, job.job_type, job.queue, job.scheduled_at
     from forge_jobs as job
     where status in ('pending', 'retry')
     order by forge_lane(job_type, queue, worker_capability, priority), scheduled_at, id
     limit 1)
    union all
    select next.*
    from lanes
    cross join lateral (
        select forge_lane(job_type, queue, worker_capability, priority) as lane, job.job_type, job.queue, job.scheduled_at
        from forge_jobs as job
        where status in ('pending', 'retry')
          and forge_lane(job_type, queue, worker_capability, priority) > lanes.lane
        order by forge_lane(job_type, queue, worker_capability, priority), scheduled_at, id
        limit 1) as next
), pauses as (
    select type, queue from forge_pauses where coalesce(until > now() + $2, true)
), waiting as (
    select coalesce(sum(due.count), 0)::bigint as ready,
           count(*) filter (where scheduled_at > now()) as soon,
           coalesce(extract(epoch from now() - min(scheduled_at) filter (where scheduled_at <= now())), 0)::float8
               as oldest_seconds
    from lanes
    cross join lateral (
        select count(*) as count
        from (select
              from forge_jobs
              where status in ('pending', 'retry')
                and forge_lane(job_type, queue, worker_capability, priority) = lanes.lane
                and scheduled_at <= now()
              order by scheduled_at, id
              limit 10000) as counted) as due
    where ($1 is null or lanes.queue = $1) and scheduled_at <= now() + $2
      and not exists (select from pauses
                      where coalesce(pauses.type = lanes.job_type, true)
                        and coalesce(pauses.queue = lanes.queue, true))
), owned as (
    select count(*) as running
    from forge_jobs as job
    where status in ('claimed', 'running') and ($1 is null or job.queue = $1)
), schedules as (
    select count(*) filter (where next_run_at <= now()) as ready,
           count(*) filter (where next_run_at > now()) as soon
    from (select next_run_at
          from forge_schedules
          where $3 and enabled and running_since is null and next_run_at <= now() + $2
            and not exists (select from pauses
                            where pauses.type = forge_schedules.type and pauses.queue is null)
          limit 10000) as due
), held as (
    select count(*) as running from forge_schedules where $3 and running_since is not null
)
select waiting.ready + schedules.ready, owned.running + held.running, waiting.soon + schedules.soon,
       waiting.oldest_seconds,
       greatest(waiting.ready + schedules.ready + owned.running + held.running,
                least(waiting.soon + schedules.soon, 1))
from waiting, owned, schedules, held
$$;
