-- Write an edit of a schedule. A run in progress finishes by its old rule.
-- $1 the schedule, $2 the tenant (null: any), $3 the payload (null: unchanged), $4 when to run next, $5 the
-- tick of that run, $6 every, $7 cron, $8 time zone, $9 missed, $10 jitter, $11 priority, $12 capability,
-- $13 timeout, $14 what was edited by hand, which the definition in code leaves alone.
update forge_schedules
set payload = coalesce($3::text::jsonb, payload), next_run_at = $4, tick_at = $5, every = $6, cron = $7, tz = $8,
    missed = $9, jitter = $10, priority = $11, worker_capability = $12, timeout = $13, edited = $14,
    updated_at = now()
where id = $1 and ($2::bigint is null or tenant_id = $2)
returning *;
