-- Schedules run: what planning and rescue need, and the ways to find them.

alter table forge_schedules
    -- the tick that the next run stands for, where that is not next_run_at itself: jitter, a retry
    -- after a failure, a run out of turn
    add column tick_at timestamptz,
    -- how often the run at hand was ended by us: the worker stopped or died, or the database went away
    add column crashes integer not null default 0,
    -- whether a worker died during the run at hand, which runs alone from then on
    add column suspect boolean not null default false,
    -- what the next run finds
    add column checkpoint jsonb,
    add constraint forge_schedules_rule check (every is null or cron is null),
    add constraint forge_schedules_every check (every > interval '0');

-- Every run leaves two dead rows of a table that never grows.
alter table forge_schedules set (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- serves schedules/survey, schedules/claim
create index forge_schedules_due on forge_schedules
    (forge_lane(type, '', worker_capability, priority), next_run_at, id)
    where enabled and running_since is null and next_run_at is not null;
-- serves schedules/rescue, schedules/reconcile
create index forge_schedules_owned on forge_schedules (worker_id)
    where running_since is not null;

alter table forge_workers add column schedule_types text[] not null default '{}';
