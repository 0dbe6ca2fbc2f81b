-- Those of the watched jobs that are not as they were last seen, and those that are gone.
-- $1 ids, $2 for each the version that was seen, or null to see it whatever it is. The version of
-- a row is the transaction that wrote it, so what is changed by hand is found as well.
-- Returns watched_id, version (null when the job is gone), awaits_output, and all of the job.
select seen.id as watched_id, job.xmin as version, handler.awaits_output, job.*
from unnest($1::uuid[], $2::xid[]) as seen (id, version)
left join forge_jobs as job on job.id = any (array[seen.id])
-- The handler has completed the job in its own transaction and has yet to return the output.
cross join lateral (
    select (job.output = 'null' and job.status = 'completed'
            and job.completed_at > now() - interval '5 seconds') is true
) as handler (awaits_output)
where job.id is null
   or job.xmin is distinct from seen.version and (seen.version is null or not handler.awaits_output);
