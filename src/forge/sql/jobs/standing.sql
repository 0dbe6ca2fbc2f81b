-- The status of jobs and the outcome of one attempt each, to distinguish an ack that was written
-- before its answer was lost from one that came too late. $1 ids, $2 the leases of those attempts.
-- `outcome` is null where the attempt has no record.
select job.id, job.lease, job.status, past.outcome
from unnest($1::uuid[], $2::bigint[]) as ack (id, lease)
join forge_jobs as job on job.id = any (array[ack.id])
left join forge_attempts as past on past.job_id = any (array[ack.id]) and past.lease = ack.lease;
