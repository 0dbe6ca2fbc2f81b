-- Dispatch one job and wake a listener, in one transaction and one trip.
WITH dispatched AS (
    INSERT INTO limit_jobs (id, job_type, input) VALUES ($1, $2, $3)
    RETURNING id
)
SELECT pg_notify('limit_jobs', id::text) FROM dispatched;
