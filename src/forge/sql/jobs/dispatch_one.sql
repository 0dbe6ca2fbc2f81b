-- -> pending: one job with nothing but what its type says, the most frequent dispatch there is.
-- $1 id, $2 input, $3 to $7 as in jobs/dispatch, $8 the delay.
insert into forge_jobs
    (id, input, job_type, priority, max_attempts, queue, worker_capability, scheduled_at)
values ($1, $2, $3, $4, $5, $6, $7, now() + coalesce($8::interval, '0'));
