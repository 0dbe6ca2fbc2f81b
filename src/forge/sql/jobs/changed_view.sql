-- Like jobs/changed, with only the columns that a follower may see, the tenant that decides who may
-- follow it, and what is needed to redact secrets: the input where a message or output may quote
-- it, and what the type allows.
-- $1 ids, $2 for each the version that was last seen, or null to return it in any case.
-- Returns watched_id, awaits_output, and the columns of the view; nulls if the job was deleted.
select
    seen.id as watched_id,
    handler.awaits_output,
    job.tenant_id,
    job.id,
    job.job_type,
    job.status,
    job.version,
    job.attempts,
    job.max_attempts,
    job.progress_percent,
    job.progress_message,
    job.last_error,
    job.created_at,
    job.scheduled_at,
    job.started_at,
    job.completed_at,
    job.failed_at,
    job.cancelled_at,
    job.output,
    case
        when job.progress_message is not null or job.last_error is not null or job.output is not null
        then job.input
    end as input,
    kind.allow_sensitive
from unnest($1::uuid[], $2::bigint[]) as seen (id, version)
left join forge_jobs as job on job.id = any (array[seen.id])
left join forge_job_types as kind on kind.name = job.job_type
-- awaits_output: the handler completed the job in its own transaction and has not returned the output yet.
cross join lateral (
    select (job.output = 'null' and job.status = 'completed'
            and job.completed_at > now() - interval '5 seconds') is true
) as handler (awaits_output)
where job.id is null
   or job.version is distinct from seen.version and (seen.version is null or not handler.awaits_output);
