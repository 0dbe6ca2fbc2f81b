-- pending, retry -> running, or claimed where no slot is free: give one worker the next jobs of one
-- lane, oldest first.
-- $1 lane, $2 and $3 the cursor: claim jobs after this time and id, $4 limit, $5 whether they start
-- at once, $6 the worker, $7 its incarnation, $8 the type and $9 the queue of the lane.
-- Returns no row when nothing is due, when the lane is paused, or when a later process replaced the
-- worker. Returns only the columns that the lane does not determine.
with chosen as materialized (
    select ctid as place
    from forge_jobs
    where status in ('pending', 'retry')
      and forge_lane(job_type, queue, worker_capability, priority) = $1
      and (scheduled_at, id) > ($2, $3)
      and scheduled_at <= now()
      and exists (select from forge_workers where id = $6 and incarnation = $7)
      and not exists (select from forge_pauses as pause
                      where (pause.type is null or pause.type = $8) and (pause.queue is null or pause.queue = $9)
                        and coalesce(pause.until > now(), true))
    order by /* secured: forge_lane(job_type, queue, worker_capability, priority), */ scheduled_at, id
    limit $4
    for update skip locked
)
update forge_jobs
set status = case when $5 then 'running' else 'claimed' end, worker_id = $6, lease = lease + 1,
    version = version + 1, attempts = attempts + 1, claimed_at = now(), started_at = case when $5 then now() end,
    last_heartbeat = null, progress_percent = 0, progress_message = null
where ctid = any (array(select place from chosen))
returning
    /* generated claim within a lane */
    id, lease, attempts as attempt, max_attempts, crashes, date_part('epoch', scheduled_at) as due,
    lone_crashes, suspect as is_suspect, input, expires_at < now() as expired, timeout, tenant_id,
    category, correlation_id, auth, traceparent, checkpoint /* end */;
