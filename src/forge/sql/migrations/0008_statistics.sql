-- Statistics of jobs over time: what became of them, how long they waited and ran. Each worker writes
-- rows of its own, which maintenance merges. Histograms are sparse: buckets, and how many are in each.

-- One row per minute, job type, queue and writer; per hour once older than 48 hours.
create table forge_statistics (
    minute timestamptz not null,
    job_type varchar(255) not null,
    queue varchar(255) not null,
    -- the incarnation of a worker; all zeros for rows that several writers share
    writer uuid not null default '00000000-0000-0000-0000-000000000000',
    completed bigint not null default 0,
    -- jobs that ended as failed or dead_letter
    failed bigint not null default 0,
    -- attempts that failed and are tried again
    retried bigint not null default 0,
    -- attempts that were lost: their worker or process died, or the database went away
    crashed bigint not null default 0,
    cancelled bigint not null default 0,
    -- attempts that a stopping worker gave back
    released bigint not null default 0,
    snoozed bigint not null default 0,
    -- dead letters that became new jobs
    reprocessed bigint not null default 0,
    -- seconds from scheduled_at to the start of an attempt
    wait_buckets smallint[] not null default '{}',
    wait_counts bigint[] not null default '{}',
    -- seconds from the start of an attempt to its end
    run_buckets smallint[] not null default '{}',
    run_counts bigint[] not null default '{}',
    primary key (minute, job_type, queue, writer)
) with (
    -- a worker updates its row of the minute every ten seconds
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.05
);

-- One row per five minutes, tenant and writer; per hour once older than 48 hours.
create table forge_tenant_statistics (
    -- the beginning of the five minutes
    minute timestamptz not null,
    tenant_id bigint not null,
    -- as in forge_statistics
    writer uuid not null default '00000000-0000-0000-0000-000000000000',
    completed bigint not null default 0,
    failed bigint not null default 0,
    retried bigint not null default 0,
    crashed bigint not null default 0,
    cancelled bigint not null default 0,
    released bigint not null default 0,
    snoozed bigint not null default 0,
    reprocessed bigint not null default 0,
    primary key (tenant_id, minute, writer)
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.05
);
-- serves statistics/merge_of_tenants, prune_of_tenants
create index forge_tenant_statistics_minute on forge_tenant_statistics (minute);

-- Statistics of all tenants are for operators; every caller who can reprocess a dead letter may count it.
create policy forge_operator on forge_statistics for select using ((select forge_is_operator()));
create policy forge_count on forge_statistics for insert with check ((select forge_caller()) is not null);
create policy forge_tenant on forge_tenant_statistics
    using (tenant_id = (select forge_current_tenant()) or (select forge_is_operator()));

alter table forge_statistics enable row level security;
alter table forge_tenant_statistics enable row level security;
