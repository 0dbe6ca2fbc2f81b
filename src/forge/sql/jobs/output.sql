-- Store what the handler returned for a job that it completed in its own transaction without an
-- output. Until then the output is a JSON null.
-- $1 the job, $2 the lease of the attempt, $3 the output (null: none).
update forge_jobs
set output = $3::jsonb, version = version + 1
where id = $1 and lease = $2 and status = 'completed' and output = 'null'
returning id;
