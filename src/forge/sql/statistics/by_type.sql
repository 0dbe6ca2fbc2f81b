-- Statistics by job type and queue. Parameters as in statistics/series, without the step: $3 the job
-- type, $4 the queue.
-- Returns the sums and the merged histograms of each type and queue that has jobs.
-- The rows are kept once: with unknown parameters the planner expects few of them, and would sort
-- every bucket of a month.
with chosen as materialized (
    select *
    from forge_statistics
    where minute >= $1 and minute < $2
      and ($3::text is null or job_type = $3) and ($4::text is null or queue = $4)
      and (queue <> 'forge' or coalesce($3, $4) is not null)
), outcomes as (
    select job_type, queue, sum(completed)::bigint as completed, sum(failed)::bigint as failed,
           sum(retried)::bigint as retried, sum(crashed)::bigint as crashed, sum(cancelled)::bigint as cancelled,
           sum(released)::bigint as released, sum(snoozed)::bigint as snoozed, sum(reprocessed)::bigint as reprocessed
    from chosen
    group by job_type, queue
), waits as (
    select job_type, queue, array_agg(bucket) as buckets, array_agg(number) as counts
    from (select job_type, queue, bucket, sum(number)::bigint as number
          from chosen cross join lateral unnest(wait_buckets, wait_counts) as one (bucket, number)
          group by job_type, queue, bucket) as summed
    group by job_type, queue
), runs as (
    select job_type, queue, array_agg(bucket) as buckets, array_agg(number) as counts
    from (select job_type, queue, bucket, sum(number)::bigint as number
          from chosen cross join lateral unnest(run_buckets, run_counts) as one (bucket, number)
          group by job_type, queue, bucket) as summed
    group by job_type, queue
)
select outcomes.*, coalesce(waits.buckets, '{}') as wait_buckets, coalesce(waits.counts, '{}') as wait_counts,
       coalesce(runs.buckets, '{}') as run_buckets, coalesce(runs.counts, '{}') as run_counts
from outcomes left join waits using (job_type, queue) left join runs using (job_type, queue);
