-- pending, retry -> running or claimed, from several lanes of one priority, oldest first across all
-- of them: count how many of the wanted jobs are at the head of each lane, then claim that many
-- from each. Parameters as in jobs/claim; $1 to $3, $8 and $9 are lists. A lane without a type and
-- queue is never paused: it is one of built-in jobs.
with lanes as materialized (
    select *
    from unnest($1::bigint[], $2::timestamptz[], $3::uuid[], $8::text[], $9::text[])
        as lanes (lane, after_at, after_id, job_type, queue)
    where exists (select from forge_workers where id = $6 and incarnation = $7)
      and not exists (select from forge_pauses as pause
                      where (pause.type is null or pause.type = lanes.job_type)
                        and (pause.queue is null or pause.queue = lanes.queue)
                        and coalesce(pause.until > now(), true))
), shares as materialized (
    select lane, after_at, after_id, count(*) as share
    from (
        select lanes.*
        from lanes
        cross join lateral (
            select scheduled_at, id
            from forge_jobs
            where status in ('pending', 'retry')
              and forge_lane(job_type, queue, worker_capability, priority) = lanes.lane
              and (scheduled_at, id) > (lanes.after_at, lanes.after_id)
              and scheduled_at <= now()
            order by /* secured: forge_lane(job_type, queue, worker_capability, priority), */ scheduled_at, id
            limit $4) as waiting
        order by waiting.scheduled_at, waiting.id
        limit $4) as heads
    group by lane, after_at, after_id
), chosen as materialized (
    select taken.place
    from shares
    cross join lateral (
        select ctid as place
        from forge_jobs
        where status in ('pending', 'retry')
          and forge_lane(job_type, queue, worker_capability, priority) = shares.lane
          and (scheduled_at, id) > (shares.after_at, shares.after_id)
          and scheduled_at <= now()
        order by /* secured: forge_lane(job_type, queue, worker_capability, priority), */ scheduled_at, id
        limit shares.share
        for update skip locked) as taken
)
update forge_jobs
set status = case when $5 then 'running' else 'claimed' end, worker_id = $6,
    lease = lease + 1, version = version + 1, attempts = attempts + 1,
    claimed_at = now(), started_at = case when $5 then now() end,
    last_heartbeat = null, progress_percent = 0, progress_message = null
where ctid = any (array(select place from chosen))
returning
    /* generated claim */
    id, lease, attempts as attempt, max_attempts, priority, crashes,
    date_part('epoch', scheduled_at) as due, lone_crashes, suspect as is_suspect, job_type as type,
    queue, worker_capability, input, expires_at < now() as expired, timeout, tenant_id, category,
    correlation_id, auth, traceparent, checkpoint /* end */;
