-- From now on every job that begins to wait leaves a row in the outbox. Waits for those who write jobs.
alter table forge_jobs enable trigger forge_jobs_tell, enable trigger forge_jobs_tell_again;
