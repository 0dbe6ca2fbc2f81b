-- Enable or disable a schedule. Its time stays: it runs then, or at once if that has passed. A
-- current run continues and plans the next one.
-- $1 the schedule, $2 whether it is enabled, $3 only if it belongs to this tenant (null: any).
update forge_schedules
set enabled = $2,
    -- ticks while it was disabled do not count as missed
    next_run_at = case when $2 and not enabled and missed <> 'once' and running_since is null
                       then greatest(next_run_at, now()) else next_run_at end,
    -- the ticks of `every` stay on their grid
    tick_at = case when not ($2 and not enabled and missed <> 'once' and running_since is null
                             and next_run_at < now()) then tick_at
                   when every is not null
                   then coalesce(tick_at, next_run_at)
                        + floor(extract(epoch from now() - coalesce(tick_at, next_run_at))
                                / extract(epoch from every)) * every
                   when missed = 'skip' then coalesce(tick_at, next_run_at) end,
    updated_at = now()
where id = $1 and ($3::bigint is null or tenant_id = $3)
returning *;
