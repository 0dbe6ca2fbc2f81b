-- The seconds from the first claim to the last completion, and how many completed.
select extract(epoch from max(completed_at) - min(claimed_at))::float8 as seconds, count(*) as jobs
from forge_jobs
where status = 'completed' and job_type = $1;
