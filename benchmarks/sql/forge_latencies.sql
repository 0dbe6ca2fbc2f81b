-- What each stamp job measured, in milliseconds.
select (output ->> 'seconds')::float8 * 1000 as milliseconds
from forge_jobs
where job_type = 'stamp' and status = 'completed';
