-- -> pending: one job with the defaults of its type, the most frequent dispatch.
-- $1 id, $2 input, then the columns in this order, and the delay.
insert into forge_jobs
    (id, input, scheduled_at,
     /* generated columns */
     job_type, priority, max_attempts, queue, worker_capability /* end */)
values ($1, $2, now() + coalesce($8 /* delay */::interval, '0'),
        /* generated values */
        $3, $4, $5, $6, $7 /* end */);
