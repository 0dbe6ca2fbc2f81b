-- An estimate of the number of jobs by status, category, type and error class. Statuses with an
-- index of their own are counted, up to $1 of each.
with counted as materialized (
    select ended.status as value, count(*) as jobs
    from unnest(array['failed', 'dead_letter', 'cancelled']) as ended (status)
         cross join lateral (select from forge_jobs as job
                             where job.status = ended.status
                               and job.status in ('failed', 'dead_letter', 'cancelled')
                             limit $1) as job
    group by 1
    having count(*) < $1
    union all
    select status, count(*)
    from (select status from forge_jobs
          where status in ('claimed', 'running') and worker_id is not null limit $1) as owned
    group by 1
), known as materialized (
    select * from forge_job_estimates()
)
select known.name, known.value, coalesce(counted.jobs, known.jobs) as jobs
from known left join counted on known.name = 'status' and counted.value = known.value
union all
select 'status', value, jobs
from counted
where value not in (select value from known where name = 'status');
