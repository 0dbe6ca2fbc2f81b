-- Write what the handler returned into a job that it completed in a transaction of its own, where it
-- had not given the output there: until now that is a JSON null.
-- $1 the job, $2 the lease of the attempt, $3 the output (null: none).
update forge_jobs
set output = $3::jsonb
where id = $1 and lease = $2 and status = 'completed' and output = 'null'
returning id;
