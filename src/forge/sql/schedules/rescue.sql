-- Make schedules claimable again whose runs were lost: the owner died, or it is unknown and the run
-- has shown no sign of life for long.
-- $1 only these owners (null: all), $2 seconds without a heartbeat after which an owner is dead, $3
-- seconds without a sign of life from the run where its owner is unknown, $4 limit, $5 how many
-- runs to keep.
-- Returns the rescued schedules.
with lost as materialized (
    select ctid as place
    from forge_schedules as schedule
    where running_since is not null
      and ($1::uuid[] is null or worker_id = any ($1))
      and coalesce(
          (select owner.last_heartbeat <= now() - make_interval(secs => $2)
           from forge_workers as owner
           where owner.id = schedule.worker_id),
          greatest(last_heartbeat, running_since) <= now() - make_interval(secs => $3))
    limit $4
    for update skip locked
)
update forge_schedules
set running_since = null, crashes = crashes + 1, suspect = true,
    last_error = 'the worker died while it ran this schedule',
    recent_runs = jsonb_build_array(jsonb_build_object(
            'lease', lease, 'outcome', 'lost', 'due_at', next_run_at,
            'started_at', running_since, 'ended_at', now()))
        || jsonb_path_query_array(recent_runs, '$[0 to $last]',
                                  jsonb_build_object('last', $5::integer - 2)),
    updated_at = now()
where ctid = any (array(select place from lost))
returning id, worker_id;
