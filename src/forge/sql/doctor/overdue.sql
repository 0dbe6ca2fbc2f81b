-- How many seconds ago the most overdue of the oldest jobs should have been pruned; 0 where none is
-- overdue.
-- $1 seconds to keep completed jobs, $2 seconds to keep other final jobs (null: forever).
with oldest as materialized (
    select id, status, coalesce(completed_at, failed_at, cancelled_at) as ended_at
    from forge_jobs
    order by id
    limit 1000
)
select coalesce(max(extract(epoch from now() - ended_at)
                    - case status when 'completed' then $1::float8 else $2::float8 end), 0)::float8 as seconds
from oldest
where status in ('completed', 'failed', 'cancelled', 'dead_letter')
  and not exists (select from forge_dead_letters as letter
                  where letter.job_id = any (array[oldest.id]) and letter.status = 'pending_review');
