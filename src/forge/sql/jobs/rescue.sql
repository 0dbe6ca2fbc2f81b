-- claimed, running -> retry: rescue the jobs of dead workers. A running job may have killed its
-- worker, so it becomes suspect and runs alone next. A claimed job counts as crashed too: its
-- handler may have begun before the start was written.
-- $1 the owners, $2 only these jobs (null: all), $3 seconds without a heartbeat after which an
-- owner is dead, $4 seconds without a sign of life from the job where its owner is unknown, $5
-- limit.
-- Returns the rescued jobs, which of their attempts were lost, and after how many seconds.
with lost as materialized (
    select ctid as place, status
    from forge_jobs as job
    where status in ('claimed', 'running')
      and worker_id = any ($1::uuid[])
      and ($2::uuid[] is null or id = any ($2))
      and coalesce(
          (select owner.last_heartbeat <= now() - make_interval(secs => $3)
           from forge_workers as owner
           where owner.id = job.worker_id),
          greatest(last_heartbeat, claimed_at) <= now() - make_interval(secs => $4))
    limit $5
    for update skip locked
), rescued as (
    update forge_jobs as job
    set status = 'retry', version = version + 1, scheduled_at = now(), attempts = attempts - 1,
        original_scheduled_at = coalesce(original_scheduled_at, scheduled_at),
        crashes = crashes + 1,
        suspect = suspect or lost.status = 'running',
        last_error = case when lost.status = 'running' then 'the worker died while it ran this job'
                          else last_error end
    from lost
    where job.ctid = lost.place
    returning job.*, lost.status as was
), recorded as (
    insert into forge_attempts
        (job_id, lease, attempt, tenant_id, worker_id, outcome, error, claimed_at, started_at)
    select id, lease, attempts + 1, tenant_id, worker_id, 'lost', last_error, claimed_at, started_at
    from rescued
    where was = 'running'
    on conflict do nothing
)
select id, lease, job_type, queue, worker_id, was, attempts + 1 as attempt, crashes - 1 as crashes, tenant_id, correlation_id,
       extract(epoch from now() - started_at)::float8 as seconds
from rescued;
