-- Add what the handler returned to a job that it completed in a transaction of its own.
update forge_jobs
set output = $3::jsonb
where id = $1 and lease = $2 and status = 'completed' and output is null
returning id;
