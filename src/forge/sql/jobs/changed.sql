-- The followed jobs that changed since they were last seen, and those that were deleted.
-- $1 ids, $2 for each the version that was last seen, or null to return it in any case.
-- Returns watched_id, awaits_output, and every column of the job; nulls if the job was deleted.
select seen.id as watched_id, handler.awaits_output, job.*
from unnest($1::uuid[], $2::bigint[]) as seen (id, version)
left join forge_jobs as job on job.id = any (array[seen.id])
-- awaits_output: the handler completed the job in its own transaction and has not returned the output yet.
cross join lateral (
    select (job.output = 'null' and job.status = 'completed'
            and job.completed_at > now() - interval '5 seconds') is true
) as handler (awaits_output)
where job.id is null
   or job.version is distinct from seen.version and (seen.version is null or not handler.awaits_output);
