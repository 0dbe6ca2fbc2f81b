-- What workers run or have claimed, per worker the longest running first: jobs, and runs of
-- schedules.
-- $1 the workers, $2 how much to return of each at most.
select worker.id as worker_id, held.*
from unnest($1::uuid[]) as worker (id)
cross join lateral (
    (select 'job' as kind, id, job_type as type, queue, status::text as status, attempts as attempt,
            coalesce(started_at, claimed_at) as since, progress_percent, tenant_id
     from forge_jobs
     where status in ('claimed', 'running') and worker_id = any (array[worker.id])
     order by coalesce(started_at, claimed_at), id
     limit $2::bigint)
    union all
    (select 'run', id, type, null, 'running', consecutive_failures + 1, running_since, null, tenant_id
     from forge_schedules
     where running_since is not null and worker_id = any (array[worker.id])
     order by running_since, id
     limit $2::bigint)
    order by since, id
    limit $2::bigint) as held;
