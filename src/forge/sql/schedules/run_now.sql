-- Make an enabled schedule due at once; its next tick stays. A schedule that is running runs once
-- more.
-- $1 the schedule, $2 only if it belongs to this tenant (null: any).
update forge_schedules
set next_run_at = now(), tick_at = coalesce(tick_at, next_run_at), updated_at = now()
where id = $1 and enabled and ($2::bigint is null or tenant_id = $2)
returning *;
