truncate forge_jobs, forge_attempts, forge_idempotency_keys;
