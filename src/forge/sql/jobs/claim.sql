-- pending, retry -> running, or claimed where no slot is free: give one worker the next jobs of
-- one lane, the oldest first.
-- $1 lane, $2 and $3 the place in it after which to look, $4 how many, $5 whether they start at once,
-- $6 the worker, $7 its incarnation.
-- Returns no row when there is nothing to do, or when the worker was replaced by a later one; and of
-- each job what its lane does not tell.
with chosen as materialized (
    select ctid as place
    from forge_jobs
    where status in ('pending', 'retry')
      and forge_lane(job_type, queue, worker_capability, priority) = $1
      and (scheduled_at, id) > ($2, $3)
      and scheduled_at <= now()
      and exists (select from forge_workers where id = $6 and incarnation = $7)
    order by /* secured: forge_lane(job_type, queue, worker_capability, priority), */ scheduled_at, id
    limit $4
    for update skip locked
)
update forge_jobs
set status = case when $5 then 'running' else 'claimed' end, worker_id = $6, lease = lease + 1, attempts = attempts + 1,
    claimed_at = now(), started_at = case when $5 then now() end,
    last_heartbeat = null, progress_percent = 0, progress_message = null
where ctid = any (array(select place from chosen))
returning id, lease, input, attempts, max_attempts, date_part('epoch', scheduled_at), crashes, lone_crashes, suspect,
    timeout, expires_at < now() as expired, tenant_id, correlation_id, auth, checkpoint, traceparent,
    category;
