-- The jobs that these workers own.
select id from forge_jobs where status in ('claimed', 'running') and worker_id = any ($1::uuid[]);
