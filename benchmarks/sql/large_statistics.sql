-- Statistics of 20 types in two queues: of each minute of the last 48 hours, and of each hour of 28 days before.
insert into forge_statistics
    (minute, job_type, queue, completed, failed, wait_buckets, wait_counts, run_buckets, run_counts)
select minute, 'type_' || type, queue, 100, 1, array[-8, 0, 8]::smallint[], array[50, 40, 11]::bigint[],
       array[4, 12, 20]::smallint[], array[60, 30, 11]::bigint[]
from (select date_trunc('minute', now()) - n * interval '1 minute' as minute from generate_series(0, 2879) as n
      union all
      select date_trunc('hour', now()) - n * interval '1 hour' from generate_series(49, 720) as n) as times,
     generate_series(0, 19) as type, (values ('default'), ('mail')) as queues (queue)
