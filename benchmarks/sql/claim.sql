-- pending -> claimed: give one worker ($1) its next :batch jobs, the most urgent first.
-- The limit is a literal because a parameter would have the planner guess a tenth of the
-- table; the CTE is materialized because inlined it may claim more than the limit.
WITH claimable AS MATERIALIZED (
    SELECT id
    FROM limit_jobs
    WHERE status = 'pending' AND scheduled_at <= now()
    ORDER BY priority DESC, scheduled_at
    LIMIT :batch
    FOR UPDATE SKIP LOCKED
)
UPDATE limit_jobs
SET status = 'claimed', worker_id = $1, claimed_at = now(), attempts = attempts + 1
FROM claimable
WHERE limit_jobs.id = claimable.id
RETURNING limit_jobs.id, job_type, input, attempts, max_attempts;
