-- Dispatch one job: its id ($1), its type ($2), its input ($3).
INSERT INTO limit_jobs (id, job_type, input) VALUES ($1, $2, $3);
