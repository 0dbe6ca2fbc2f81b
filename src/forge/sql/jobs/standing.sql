-- How jobs stand, and what became of an attempt at each, to tell an ack that was carried out before
-- its answer got lost from one that came too late. $1 ids, $2 the leases of those attempts.
-- `outcome` is null where the attempt left no record.
select job.id, job.lease, job.status, past.outcome
from unnest($1::uuid[], $2::bigint[]) as ack (id, lease)
join forge_jobs as job on job.id = any (array[ack.id])
left join forge_attempts as past on past.job_id = any (array[ack.id]) and past.lease = ack.lease;
