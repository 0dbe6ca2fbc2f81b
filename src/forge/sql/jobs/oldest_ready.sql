-- The job that has been due the longest, among those that are not paused. None where no job is due.
select id as job_id, job_type, queue, scheduled_at,
       extract(epoch from now() - scheduled_at)::float8 as waiting_seconds
from forge_lane_heads() as head
where scheduled_at <= now()
  and not exists (select
                  from forge_pauses as pause
                  where (pause.type is null or pause.type = head.job_type)
                    and (pause.queue is null or pause.queue = head.queue)
                    and coalesce(pause.until > now(), true))
order by scheduled_at, id
limit 1;
