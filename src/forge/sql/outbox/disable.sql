-- From now on nobody writes into the outbox. Waits for those who write jobs.
alter table forge_jobs disable trigger forge_jobs_tell, disable trigger forge_jobs_tell_again;
