-- Lanes as the server reads them. Row security keeps PostgreSQL from using the index of forge_lane(), which is
-- not leakproof: a statement of forge_api would read every waiting job, or every job, to find the head of a
-- lane. These functions run as their owner, and answer operators and logins that row security does not bind.

-- The first waiting job of each lane, due or not, paused or not: one index lookup per lane.
create function forge_lane_heads()
    returns table (lane bigint, job_type text, queue text, worker_capability text, id uuid, scheduled_at timestamptz)
    language sql stable security definer as $$
with recursive lanes as (
    (select forge_lane(job.job_type, job.queue, job.worker_capability, priority) as lane,
            job.job_type, job.queue, job.worker_capability, job.id, job.scheduled_at
     from forge_jobs as job
     where status in ('pending', 'retry')
     order by forge_lane(job.job_type, job.queue, job.worker_capability, priority), job.scheduled_at, job.id
     limit 1)
    union all
    select next.*
    from lanes
    cross join lateral (
        select forge_lane(job.job_type, job.queue, job.worker_capability, priority) as lane,
               job.job_type, job.queue, job.worker_capability, job.id, job.scheduled_at
        from forge_jobs as job
        where status in ('pending', 'retry')
          and forge_lane(job.job_type, job.queue, job.worker_capability, priority) > lanes.lane
        order by forge_lane(job.job_type, job.queue, job.worker_capability, priority), job.scheduled_at, job.id
        limit 1) as next
)
select lane, job_type, queue, worker_capability, id, scheduled_at
from lanes
where case when forge_is_bound() then forge_is_operator() else true end
$$;

-- The first waiting jobs of a lane, among those before a place in it; at most `most`.
create function forge_lane_jobs(lane bigint, before_at timestamptz, before_id uuid, most bigint)
    returns table (id uuid, scheduled_at timestamptz)
    language sql stable security definer as $$
select job.id, job.scheduled_at
from forge_jobs as job
where status in ('pending', 'retry')
  and forge_lane(job_type, queue, worker_capability, priority) = $1
  and (job.scheduled_at, job.id) < ($2, $3)
  and case when forge_is_bound() then forge_is_operator() else true end
order by job.scheduled_at, job.id
limit $4
$$;
