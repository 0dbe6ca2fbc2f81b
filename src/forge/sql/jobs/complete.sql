-- running -> completed, for attempts whose lease still holds.
-- $1 ids and $2 leases as the text of arrays, $3 outputs or null for none, $4 'running': as a
-- parameter it keeps the planner from walking the index of owned jobs instead of looking up each id;
-- $5 how many.
-- Returns null when all were accepted, else the ids that were: what is missing belongs to someone
-- else by now.
with done as (
    update forge_jobs as job
    set status = 'completed', output = ack.output::jsonb, completed_at = now(), progress_percent = 100,
        -- it has recovered: statistics of errors count what fails
        error_class = null
    from unnest($1::text::uuid[], $2::text::bigint[], $3::text[]) as ack (id, lease, output)
    where job.id = any (array[ack.id]) and job.lease = ack.lease and job.status = $4
    returning job.id
)
select case when count(*) < $5 then coalesce(array_agg(id), '{}') end as accepted
from done;
