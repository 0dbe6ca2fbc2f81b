-- What a dispatch with an idempotency key would look up.
CREATE INDEX limit_jobs_idempotency ON limit_jobs (idempotency_key)
WHERE idempotency_key IS NOT NULL;
