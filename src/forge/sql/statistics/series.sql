-- Statistics by step.
-- $1 from, $2 until, $3 the step in seconds, $4 the job type (null: any), $5 the queue (null: any).
-- Built-in jobs are left out unless their queue or type is asked for.
-- Returns the sums and the merged histograms of each step that has jobs; planned as
-- statistics/by_type.
with chosen as materialized (
    select date_bin(make_interval(secs => $3), minute, '2000-01-01 00:00:00+00') as at, *
    from forge_statistics
    where minute >= $1 and minute < $2
      and ($4::text is null or job_type = $4) and ($5::text is null or queue = $5)
      and (queue <> 'forge' or coalesce($4, $5) is not null)
), outcomes as (
    select at, sum(completed)::bigint as completed, sum(failed)::bigint as failed,
           sum(retried)::bigint as retried, sum(crashed)::bigint as crashed, sum(cancelled)::bigint as cancelled,
           sum(released)::bigint as released, sum(snoozed)::bigint as snoozed, sum(reprocessed)::bigint as reprocessed
    from chosen
    group by at
), waits as (
    select at, array_agg(bucket) as buckets, array_agg(number) as counts
    from (select at, bucket, sum(number)::bigint as number
          from chosen cross join lateral unnest(wait_buckets, wait_counts) as one (bucket, number)
          group by at, bucket) as summed
    group by at
), runs as (
    select at, array_agg(bucket) as buckets, array_agg(number) as counts
    from (select at, bucket, sum(number)::bigint as number
          from chosen cross join lateral unnest(run_buckets, run_counts) as one (bucket, number)
          group by at, bucket) as summed
    group by at
)
select outcomes.*, coalesce(waits.buckets, '{}') as wait_buckets, coalesce(waits.counts, '{}') as wait_counts,
       coalesce(runs.buckets, '{}') as run_buckets, coalesce(runs.counts, '{}') as run_counts
from outcomes left join waits using (at) left join runs using (at);
