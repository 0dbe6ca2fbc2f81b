-- What a rescue of a dead worker's jobs would read.
CREATE INDEX limit_jobs_owned ON limit_jobs (worker_id)
WHERE status = 'claimed';
