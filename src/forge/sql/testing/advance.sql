-- Move the times of what waits into the past, as if a span had passed: jobs with their keys,
-- schedules and pauses. What runs keeps its times. $1 the span.
with jobs as (
    update forge_jobs
    set scheduled_at = scheduled_at - $1::interval, created_at = created_at - $1::interval,
        expires_at = expires_at - $1::interval, completed_at = completed_at - $1::interval,
        failed_at = failed_at - $1::interval, cancelled_at = cancelled_at - $1::interval,
        original_scheduled_at = original_scheduled_at - $1::interval, version = version + 1
    where status not in ('claimed', 'running')
), keys as (
    update forge_idempotency_keys set created_at = created_at - $1::interval
), schedules as (
    update forge_schedules
    set next_run_at = next_run_at - $1::interval, tick_at = tick_at - $1::interval,
        last_run_at = last_run_at - $1::interval, created_at = created_at - $1::interval
    where running_since is null
), pauses as (
    update forge_pauses set until = until - $1::interval, created_at = created_at - $1::interval
)
select 1 as done;
