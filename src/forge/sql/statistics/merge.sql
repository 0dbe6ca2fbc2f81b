-- Merge the rows of several writers, or of several minutes, into one row per step, type and queue.
-- $1 only rows from this time on, $2 seconds since the end of a step after which it is merged,
-- $3 the step, $4 the most rows to make.
-- Returns how many rows were made, and until when everything is merged.
with steps as materialized (
    select make_interval(secs => $3) as length, timestamptz '2000-01-01 00:00:00+00' as origin,
           date_bin(make_interval(secs => $3), now() - make_interval(secs => $2), '2000-01-01 00:00:00+00') as bound
), due as materialized (
    select distinct date_bin(length, minute, origin) as at, job_type, queue
    from steps
    cross join lateral (
        select * from forge_statistics where minute >= $1 and minute < bound
        order by minute, job_type, queue) as own
    where minute <> date_bin(length, minute, origin) or writer <> '00000000-0000-0000-0000-000000000000'
    order by 1, 2, 3
    limit $4
), taken as materialized (
    delete from forge_statistics as own
    using due, steps
    where own.minute >= due.at and own.minute < due.at + steps.length
      and own.job_type = due.job_type and own.queue = due.queue
    returning own.*, due.at
), summed as (
    select at, job_type, queue, part, bucket, sum(number)::bigint as number
    from taken
    cross join lateral (
        values ('completed', null::smallint, completed), ('failed', null, failed), ('retried', null, retried),
               ('crashed', null, crashed), ('cancelled', null, cancelled), ('released', null, released),
               ('snoozed', null, snoozed), ('reprocessed', null, reprocessed)
        union all select 'wait', * from unnest(wait_buckets, wait_counts)
        union all select 'run', * from unnest(run_buckets, run_counts)) as one (part, bucket, number)
    group by at, job_type, queue, part, bucket
), merged as (
    insert into forge_statistics
        (minute, job_type, queue, completed, failed, retried, crashed, cancelled, released, snoozed, reprocessed,
         wait_buckets, wait_counts, run_buckets, run_counts)
    select at, job_type, queue,
           sum(number) filter (where part = 'completed'), sum(number) filter (where part = 'failed'),
           sum(number) filter (where part = 'retried'), sum(number) filter (where part = 'crashed'),
           sum(number) filter (where part = 'cancelled'), sum(number) filter (where part = 'released'),
           sum(number) filter (where part = 'snoozed'), sum(number) filter (where part = 'reprocessed'),
           coalesce(array_agg(bucket order by bucket) filter (where part = 'wait'), '{}'),
           coalesce(array_agg(number order by bucket) filter (where part = 'wait'), '{}'),
           coalesce(array_agg(bucket order by bucket) filter (where part = 'run'), '{}'),
           coalesce(array_agg(number order by bucket) filter (where part = 'run'), '{}')
    from summed
    group by at, job_type, queue
    returning 1
)
select (select count(*) from merged) as made, (select bound from steps) as bound;
