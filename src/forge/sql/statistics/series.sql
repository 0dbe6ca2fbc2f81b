-- Statistics by step.
-- $1 from, $2 until, $3 the step in seconds, $4 the job type (null: any), $5 the queue (null: any).
-- Built-in jobs are left out unless their queue or type is asked for.
-- Returns the sums and the merged histograms of each step that has jobs.
with summed as (
    select date_bin(make_interval(secs => $3), minute, '2000-01-01 00:00:00+00') as at, part, bucket,
           sum(number)::bigint as number
    from forge_statistics
    cross join lateral (
        values ('completed', null::smallint, completed), ('failed', null, failed), ('retried', null, retried),
               ('crashed', null, crashed), ('cancelled', null, cancelled), ('released', null, released),
               ('snoozed', null, snoozed), ('reprocessed', null, reprocessed)
        union all select 'wait', * from unnest(wait_buckets, wait_counts)
        union all select 'run', * from unnest(run_buckets, run_counts)) as one (part, bucket, number)
    where minute >= $1 and minute < $2
      and ($4::text is null or job_type = $4) and ($5::text is null or queue = $5)
      and (queue <> 'forge' or coalesce($4, $5) is not null)
    group by at, part, bucket
)
select at,
       sum(number) filter (where part = 'completed')::bigint as completed,
       sum(number) filter (where part = 'failed')::bigint as failed,
       sum(number) filter (where part = 'retried')::bigint as retried,
       sum(number) filter (where part = 'crashed')::bigint as crashed,
       sum(number) filter (where part = 'cancelled')::bigint as cancelled,
       sum(number) filter (where part = 'released')::bigint as released,
       sum(number) filter (where part = 'snoozed')::bigint as snoozed,
       sum(number) filter (where part = 'reprocessed')::bigint as reprocessed,
       coalesce(array_agg(bucket) filter (where part = 'wait'), '{}') as wait_buckets,
       coalesce(array_agg(number) filter (where part = 'wait'), '{}') as wait_counts,
       coalesce(array_agg(bucket) filter (where part = 'run'), '{}') as run_buckets,
       coalesce(array_agg(number) filter (where part = 'run'), '{}') as run_counts
from summed
group by at;
