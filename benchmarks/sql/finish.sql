-- claimed -> completed: store the outputs ($2) of the jobs ($1).
UPDATE limit_jobs
SET status = 'completed', output = finished.output, completed_at = now()
FROM unnest($1::uuid[], $2::jsonb[]) AS finished (id, output)
WHERE limit_jobs.id = finished.id;
