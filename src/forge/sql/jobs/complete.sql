-- running -> completed, for attempts that still hold the lease.
-- $1 ids and $2 leases as array literals in text, $3 outputs (null: none), $4 'running', a
-- parameter so that the planner looks up each id instead of scanning the index of owned jobs, $5
-- how many.
-- Returns null when all were accepted, otherwise the accepted ids: the others belong to another
-- attempt now.
with done as (
    update forge_jobs as job
    set status = 'completed', version = job.version + 1, output = ack.output::jsonb, completed_at = now(),
        progress_percent = 100,
        -- cleared, because the statistics of errors count failed jobs only
        error_class = null
    from unnest($1::text::uuid[], $2::text::bigint[], $3::text[]) as ack (id, lease, output)
    where job.id = any (array[ack.id]) and job.lease = ack.lease and job.status = $4
    returning job.id
)
select case when count(*) < $5 then coalesce(array_agg(id), '{}') end as accepted
from done;
