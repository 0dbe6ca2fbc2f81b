-- How many of the jobs were cancelled, and how often they were changed.
select count(*) filter (where status = 'cancelled' and version = 1) as once,
       count(*) filter (where status <> 'cancelled' or version <> 1) as others
from forge_jobs
where job_type = 'later'
