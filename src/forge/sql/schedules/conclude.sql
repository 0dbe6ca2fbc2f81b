-- Write the outcomes of runs that still hold the lease. A schedule that was moved or got another
-- rule during its run keeps its new time: `due` differs then.
-- $1 ids, $2 leases, $3 the time each run was due, $4 when to run next, or $5 in how many seconds,
-- $6 the tick of the next run (null: its time), $7 outcomes (null: nothing began and nothing is
-- recorded), $8 errors, $9 checkpoints (null: unchanged), $10 the last messages of the handlers,
-- $11 how many runs to keep, $12 true, a parameter so that the planner looks up each id instead of
-- scanning the index of owned schedules.
-- Returns the accepted ids.
with acks as materialized (
    select *
    from unnest($1::uuid[], $2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::float8[],
                $6::timestamptz[], $7::text[], $8::text[], $9::text[], $10::text[])
        as ack (id, lease, due, next_at, delay, tick_at, outcome, error, checkpoint, message)
)
update forge_schedules as schedule
set running_since = null,
    last_heartbeat = null,
    last_run_at = case when ack.outcome in ('completed', 'failed', 'crashed') then now()
                       else schedule.last_run_at end,
    next_run_at = case when schedule.next_run_at is distinct from ack.due then schedule.next_run_at
                       else coalesce(now() + make_interval(secs => ack.delay), ack.next_at) end,
    tick_at = case when schedule.next_run_at is distinct from ack.due then schedule.tick_at
                   else ack.tick_at end,
    last_error = case when ack.outcome = 'completed' then null
                      else coalesce(left(ack.error, 500), schedule.last_error) end,
    consecutive_failures = case when ack.outcome = 'completed' then 0
                                else schedule.consecutive_failures
                                     + coalesce(ack.outcome in ('failed', 'crashed'), false)::integer end,
    crashes = case when ack.outcome in ('completed', 'failed') then 0
                   when ack.outcome in ('crashed', 'lost', 'released') then schedule.crashes + 1
                   else schedule.crashes end,
    suspect = case when ack.outcome in ('completed', 'failed') then false
                   when ack.outcome = 'crashed' then true
                   else schedule.suspect end,
    checkpoint = coalesce(ack.checkpoint::jsonb, schedule.checkpoint),
    recent_runs = case when ack.outcome is null then schedule.recent_runs else
        jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
            'lease', schedule.lease, 'outcome', ack.outcome, 'due_at', ack.due,
            'started_at', schedule.running_since, 'ended_at', now(),
            'error', left(ack.error, 200), 'message', ack.message)))
        || jsonb_path_query_array(schedule.recent_runs, '$[0 to $last]',
                                  jsonb_build_object('last', $11::integer - 2)) end,
    updated_at = now()
from acks as ack
where schedule.id = any (array[ack.id]) and schedule.lease = ack.lease
  and (schedule.running_since is not null) = $12
returning schedule.id;
