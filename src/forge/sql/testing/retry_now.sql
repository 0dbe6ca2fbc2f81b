-- Make the jobs that wait for a retry due. $1 only this job (null: all). Returns their ids.
update forge_jobs
set scheduled_at = now(), version = version + 1
where status = 'retry' and scheduled_at > now() and ($1::uuid is null or id = $1)
returning id;
