-- What attempts report while they run, and when each was claimed and will be retried.

alter table forge_attempts
    add column claimed_at timestamptz,
    -- when the next attempt is due, where this one is retried
    add column retry_at timestamptz;

-- What attempts reported while they ran: log lines, progress messages and snoozes.
create table forge_attempt_logs (
    job_id uuid not null,
    lease bigint not null,
    kind varchar(16) not null,
    -- the place among the lines of its kind: a newer line replaces the oldest
    slot integer not null,
    -- how many lines of its kind the attempt had written with this one; of a snooze the attempt
    number bigint not null,
    tenant_id bigint,
    at timestamptz not null,
    level varchar(8),
    message text,
    fields jsonb,
    percent integer,
    constraint forge_attempt_logs_kind check (kind in ('log', 'progress', 'snoozed')),
    primary key (job_id, lease, kind, slot)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

create policy forge_tenant on forge_attempt_logs
    using (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()));
alter table forge_attempt_logs enable row level security;
