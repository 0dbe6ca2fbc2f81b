-- What the claim walks: the most urgent first, then the oldest.
CREATE INDEX limit_jobs_pending ON limit_jobs (priority DESC, scheduled_at)
WHERE status = 'pending';
