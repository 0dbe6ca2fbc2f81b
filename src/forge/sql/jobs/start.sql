-- claimed -> running, for prefetched jobs whose worker has a free slot now.
-- $1 ids, $2 leases, $3 the status they must have.
-- Returns the accepted ids.
update forge_jobs as job
set status = 'running', version = job.version + 1, started_at = now()
from unnest($1::uuid[], $2::bigint[], $3::text[]) as ack (id, lease, status)
where job.id = any (array[ack.id]) and job.lease = ack.lease and job.status = ack.status
returning job.id;
