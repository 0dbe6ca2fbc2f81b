-- Give one worker the schedules that are due, from several lanes of one priority, oldest first
-- across all of them: count how many of the wanted ones are at the head of each lane, then claim
-- that many from each.
-- $1 lanes, $2 and $3 the cursor in each: claim schedules after this time and id, $4 limit, $5 the
-- worker, $6 its incarnation, $7 the type of each lane.
-- Returns no row when nothing is due, when the types are paused, or when a later process replaced the
-- worker.
with lanes as materialized (
    select *
    from unnest($1::bigint[], $2::timestamptz[], $3::uuid[], $7::text[]) as lanes (lane, after_at, after_id, type)
    where exists (select from forge_workers where id = $5 and incarnation = $6)
      and not exists (select from forge_pauses as pause
                      where pause.type = lanes.type and pause.queue is null
                        and coalesce(pause.until > now(), true))
), shares as materialized (
    select lane, after_at, after_id, count(*) as share
    from (
        select lanes.*
        from lanes
        cross join lateral (
            select next_run_at, id
            from forge_schedules
            where enabled and running_since is null
              and forge_lane(type, '', worker_capability, priority) = lanes.lane
              and (next_run_at, id) > (lanes.after_at, lanes.after_id)
              and next_run_at <= now()
            order by /* secured: forge_lane(type, '', worker_capability, priority), */ next_run_at, id
            limit $4) as waiting
        order by waiting.next_run_at, waiting.id
        limit $4) as heads
    group by lane, after_at, after_id
), chosen as materialized (
    select taken.place
    from shares
    cross join lateral (
        select ctid as place
        from forge_schedules
        where enabled and running_since is null
          and forge_lane(type, '', worker_capability, priority) = shares.lane
          and (next_run_at, id) > (shares.after_at, shares.after_id)
          and next_run_at <= now()
        order by /* secured: forge_lane(type, '', worker_capability, priority), */ next_run_at, id
        limit shares.share
        for update skip locked) as taken
)
update forge_schedules
set running_since = now(), worker_id = $5, lease = lease + 1, last_heartbeat = null
where ctid = any (array(select place from chosen))
returning *;
