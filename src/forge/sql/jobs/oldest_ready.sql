-- The job that has been due the longest, among those that are not paused. None where no job is due.
-- One index lookup per lane, as in jobs/survey.
with recursive lanes as (
    (select forge_lane(job_type, queue, worker_capability, priority) as lane, id, job_type, queue, scheduled_at
     from forge_jobs
     where status in ('pending', 'retry')
     order by forge_lane(job_type, queue, worker_capability, priority), scheduled_at, id
     limit 1)
    union all
    select next.*
    from lanes
    cross join lateral (
        select forge_lane(job_type, queue, worker_capability, priority) as lane, id, job_type, queue, scheduled_at
        from forge_jobs
        where status in ('pending', 'retry')
          and forge_lane(job_type, queue, worker_capability, priority) > lanes.lane
        order by forge_lane(job_type, queue, worker_capability, priority), scheduled_at, id
        limit 1) as next
)
select id as job_id, job_type, queue, scheduled_at,
       extract(epoch from now() - scheduled_at)::float8 as waiting_seconds
from lanes
where scheduled_at <= now()
  and not exists (select
                  from forge_pauses as pause
                  where (pause.type is null or pause.type = lanes.job_type)
                    and (pause.queue is null or pause.queue = lanes.queue)
                    and coalesce(pause.until > now(), true))
order by scheduled_at, id
limit 1;
