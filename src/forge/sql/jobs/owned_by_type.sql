-- How many jobs workers hold, by type, queue and capability: no more than they have slots and fetch
-- ahead.
select job_type, queue, worker_capability, count(*) as count
from forge_jobs
where status in ('claimed', 'running')
group by job_type, queue, worker_capability;
