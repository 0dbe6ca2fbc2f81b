-- Stop writing to the outbox. Waits for transactions that write jobs.
alter table forge_jobs disable trigger forge_jobs_outbox, disable trigger forge_jobs_outbox_again;
