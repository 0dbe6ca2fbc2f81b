-- Take the next messages to send, longest due first. Each becomes due again some time after its
-- job, in case it is lost, at growing intervals: the longer a job waits, the more likely a backlog
-- is the reason.
-- $1 limit, $2 seconds until the first repetition, $3 the longest interval in seconds.
-- Returns for each the id and new time of its row, how often it was taken, and of its job whether
-- it waits, in how many seconds and when it is due, and what selects its queue. A deleted job does
-- not wait, and neither does a paused one: once it is resumed, outbox/sweep adds it again.
with due as materialized (
    select ctid as place, job_id
    from forge_outbox
    where send_at <= now()
    order by send_at
    limit $1
    for update skip locked
), jobs as materialized (
    select due.place, due.job_id, job.scheduled_at, job.priority, job.queue, job.worker_capability,
           job.status in ('pending', 'retry')
           and not exists (select from forge_pauses as pause
                           where (pause.type is null or pause.type = job.job_type)
                             and (pause.queue is null or pause.queue = job.queue)
                             and coalesce(pause.until > now(), true)) as is_waiting
    from due left join forge_jobs as job on job.id = any (array[due.job_id])
), announced as (
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
from announced;
