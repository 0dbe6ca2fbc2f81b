-- Record the progress of running attempts, and that they are alive.
-- $1 ids, $2 leases, $3 the status they must have, $4 percents, $5 messages, $6 checkpoints; null
-- leaves a value unchanged. A prefetched job can report progress before its start is written.
-- Returns the accepted ids.
update forge_jobs as job
set progress_percent = coalesce(note.percent, job.progress_percent),
    progress_message = coalesce(note.message, job.progress_message),
    checkpoint = coalesce(note.checkpoint::jsonb, job.checkpoint),
    last_heartbeat = now(),
    version = job.version + 1
from unnest($1::uuid[], $2::bigint[], $3::text[], $4::integer[], $5::text[], $6::text[])
    as note (id, lease, status, percent, message, checkpoint)
where job.id = any (array[note.id]) and job.lease = note.lease and job.status in (note.status, 'claimed')
returning job.id;
