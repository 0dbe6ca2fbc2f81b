-- The seconds from the first claim to the last completion of the jobs that count.
select extract(epoch from max(completed_at) - min(claimed_at))::float8
from forge_jobs
where tags is not null and status = 'completed';
