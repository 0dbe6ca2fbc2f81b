-- Delete the messages of paused jobs, which were received: once the jobs are resumed, outbox/sweep
-- adds them again.
-- $1 ids of jobs.
delete from forge_outbox where job_id = any ($1::uuid[]) returning id;
