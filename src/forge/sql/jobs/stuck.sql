-- Which of these lanes have been due for a while although their type is not being processed: no attempt of
-- the type ended lately, and none runs.
-- $1 the types, $2 when the first job of each is due, in seconds since the epoch, $3 seconds after which that
-- is long, $4 seconds that count as lately.
with due as (
    select job_type, extract(epoch from now())::float8 - min(head) as seconds
    from unnest($1::text[], $2::float8[]) as lane (job_type, head)
    group by job_type
)
select job_type, seconds
from due
where seconds > $3
  and not exists (select from forge_statistics as counted
                  where minute > now() - make_interval(secs => $4) and counted.job_type = due.job_type
                    and completed + failed + retried + crashed + released + snoozed > 0)
  and not exists (select from forge_jobs as job
                  where job.status in ('claimed', 'running') and job.job_type = due.job_type)
order by seconds desc;
