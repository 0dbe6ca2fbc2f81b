-- A completed job, and the time 30 days ago as the API reads it.
select id::text as job,
       to_char((now() - interval '30 days') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since
from forge_jobs
where status = 'completed'
limit 1;
