-- pending, retry -> running; claimed, running -> running under a new lease where the owner is dead:
-- claim the jobs that messages name, in one update. Final and paused jobs are never claimed. A job whose owner
-- died is rescued and claimed at once: it counts as crashed, and its attempt is given back.
-- $1 ids, $2 the worker, $3 its incarnation, $4 its job types, $5 its queues (null: all), $6 its
-- capabilities, $7 seconds without a heartbeat after which an owner is dead (null: judge no owner,
-- because this worker's own heartbeats did not get through for long enough), $8 the locked_timeout,
-- for unknown owners.
-- Returns the jobs that this worker owns now, as jobs/claim_across does, and how many seconds each
-- had been running when its owner was found dead.
with named as materialized (
    select ctid as place, status, lease, attempts, tenant_id, worker_id, claimed_at, started_at, id
    from forge_jobs as job
    where id = any ($1::uuid[])
      and (status in ('pending', 'retry') and scheduled_at <= now()
           or status in ('claimed', 'running') and coalesce(
               (select coalesce(owner.last_heartbeat <= now() - make_interval(secs => $7), false)
                from forge_workers as owner
                where owner.id = job.worker_id),
               greatest(last_heartbeat, claimed_at) <= now() - make_interval(secs => $8)))
      and job_type = any ($4::text[])
      and ($5::text[] is null or queue = any ($5))
      and (worker_capability is null or worker_capability = any ($6::text[]))
      and exists (select from forge_workers where id = $2 and incarnation = $3)
      and not exists (select from forge_pauses as pause
                      where (pause.type is null or pause.type = job.job_type)
                        and (pause.queue is null or pause.queue = job.queue)
                        and coalesce(pause.until > now(), true))
    for update skip locked
), claimed as (
    update forge_jobs as job
    set status = 'running', worker_id = $2, lease = job.lease + 1, version = job.version + 1,
        attempts = job.attempts + (named.status in ('pending', 'retry'))::integer,
        crashes = job.crashes + (named.status in ('claimed', 'running'))::integer,
        suspect = job.suspect or named.status = 'running',
        claimed_at = now(), started_at = now(),
        last_heartbeat = null, progress_percent = 0, progress_message = null
    from named
    where job.ctid = named.place
    returning job.*
), announced as (
    delete from forge_outbox where job_id = any (array(select id from claimed))
), lost as (
    insert into forge_attempts
        (job_id, lease, attempt, tenant_id, worker_id, outcome, error, claimed_at, started_at)
    select id, lease, attempts, tenant_id, worker_id, 'lost', 'the worker died while it ran this job',
           claimed_at, started_at
    from named
    where status = 'running'
    on conflict do nothing
)
select
    /* generated claim */
    id, lease, attempts as attempt, max_attempts, priority, crashes,
    date_part('epoch', scheduled_at) as due, lone_crashes, suspect as is_suspect, job_type as type,
    queue, worker_capability, input, expires_at < now() as expired, timeout, tenant_id, category,
    correlation_id, auth, traceparent, checkpoint /* end */,
    (select extract(epoch from now() - named.started_at)::float8
     from named where named.id = claimed.id and named.status = 'running') as ran_for
from claimed;
