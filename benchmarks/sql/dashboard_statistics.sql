-- Statistics of a million jobs over 30 days, of 20 types, as maintenance leaves them: per minute for
-- 48 hours, before that per hour.
insert into forge_statistics (minute, job_type, queue, completed, failed, wait_buckets, wait_counts, run_buckets, run_counts)
select at, 'type_' || type, 'default', jobs, jobs / 50,
       array(select generate_series(60, 60 + least(jobs, 15) - 1)), array_fill((jobs / least(jobs, 15))::bigint, array[least(jobs, 15)]),
       array(select generate_series(70, 70 + least(jobs, 15) - 1)), array_fill((jobs / least(jobs, 15))::bigint, array[least(jobs, 15)])
from (select date_trunc('hour', now()) - make_interval(hours => n) as at, 70 as jobs from generate_series(48, 720) as n
      union all
      select date_trunc('minute', now()) - make_interval(mins => n), 1 from generate_series(0, 2879) as n) as times
cross join generate_series(0, 19) as type;
