-- Take the next messages to send, the longest due first. Each is due again some time after its job
-- is, in case it gets lost: later from time to time, for the longer a job waits, the likelier it is
-- that there is only much to do before it.
-- $1 how many, $2 seconds until the first is sent again, $3 seconds after which at the latest.
-- Returns for each its row's id and new time, how often it was taken, and of its job whether it waits, in how many seconds it
-- is due, and what decides about its queue, and when it is due; a job that is gone does not wait.
with due as materialized (
    select ctid as place, job_id
    from forge_outbox
    where send_at <= now()
    order by send_at
    limit $1
    for update skip locked
), jobs as materialized (
    select due.place, due.job_id, job.status in ('pending', 'retry') as is_waiting, job.scheduled_at,
           job.priority, job.queue, job.worker_capability
    from due left join forge_jobs as job on job.id = any (array[due.job_id])
), told as (
    update forge_outbox as entry
    set sends = entry.sends + 1,
        send_at = greatest(jobs.scheduled_at, now())
            + make_interval(secs => least($2::float8 * 2 ^ least(entry.sends, 20), $3::float8))
    from jobs
    where entry.ctid = jobs.place
    returning entry.id, entry.send_at, entry.sends, jobs.job_id, coalesce(jobs.is_waiting, false) as is_waiting,
        jobs.scheduled_at, jobs.priority, jobs.queue, jobs.worker_capability
)
select id, send_at, sends, job_id, is_waiting, priority, queue, worker_capability,
       greatest(extract(epoch from scheduled_at) - extract(epoch from now()), 0)::float8 as due_in,
       extract(epoch from scheduled_at)::float8 as due_at
from told;
