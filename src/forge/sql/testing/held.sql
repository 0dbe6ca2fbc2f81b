-- The jobs and runs of schedules that other workers have claimed. $1 the worker that asks.
select id, job_type as type from forge_jobs
where status in ('claimed', 'running') and worker_id <> $1
union all
select id, type from forge_schedules
where running_since is not null and worker_id <> $1;
