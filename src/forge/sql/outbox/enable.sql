-- Insert a row into the outbox for every job that begins to wait. Waits for transactions that write
-- jobs.
alter table forge_jobs enable trigger forge_jobs_outbox, enable trigger forge_jobs_outbox_again;
