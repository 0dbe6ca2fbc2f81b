-- How many jobs wait or run, by status and type. $1 how many of either to read.
select status, job_type, count(*) as count
from (
    (select status, job_type from forge_jobs where status in ('pending', 'retry') limit $1::bigint)
    union all
    (select status, job_type from forge_jobs where status in ('claimed', 'running') limit $1)
) as live
group by status, job_type;
