-- Each lane with a waiting job, like jobs/survey, for operators: a worker's own statement is planned without
-- row security, and would read every waiting job with it.
select lane, job_type, queue, worker_capability,
       greatest(extract(epoch from scheduled_at) - extract(epoch from now()), paused.seconds, 0)::float8 as due_in,
       extract(epoch from scheduled_at)::float8 as head
from forge_lane_heads() as heads
cross join lateral (
    select max(extract(epoch from coalesce(until, 'infinity')) - extract(epoch from now())) as seconds
    from forge_pauses as pause
    where (pause.type is null or pause.type = heads.job_type)
      and (pause.queue is null or pause.queue = heads.queue)) as paused;
