-- Write what a worker counted, in rows of its own: each replaces what it wrote before, so that a
-- repeated statement counts nothing twice.
-- $1 rows of forge_statistics and $2 of forge_tenant_statistics as JSON, $3 the writer.
-- Rows that maintenance may have merged already are left out.
-- Returns the minutes that were written, and whether of tenants.
with counted as (
    insert into forge_statistics as own
        (minute, job_type, queue, writer, completed, failed, retried, crashed, released, snoozed,
         wait_buckets, wait_counts, run_buckets, run_counts)
    select minute, job_type, queue, $3, completed, failed, retried, crashed, released, snoozed,
           wait_buckets, wait_counts, run_buckets, run_counts
    from jsonb_to_recordset($1::text::jsonb) as new (
        minute timestamptz, job_type text, queue text, completed bigint, failed bigint, retried bigint,
        crashed bigint, released bigint, snoozed bigint, wait_buckets smallint[], wait_counts bigint[],
        run_buckets smallint[], run_counts bigint[])
    where minute + interval '1 minute' > now() - interval '90 seconds'
    on conflict (minute, job_type, queue, writer) do update
    set completed = excluded.completed, failed = excluded.failed, retried = excluded.retried,
        crashed = excluded.crashed, released = excluded.released, snoozed = excluded.snoozed,
        wait_buckets = excluded.wait_buckets, wait_counts = excluded.wait_counts,
        run_buckets = excluded.run_buckets, run_counts = excluded.run_counts
    returning minute
), of_tenants as (
    insert into forge_tenant_statistics as own
        (minute, tenant_id, writer, completed, failed, retried, crashed, released, snoozed)
    select minute, tenant_id, $3, completed, failed, retried, crashed, released, snoozed
    from jsonb_to_recordset($2::text::jsonb) as new (
        minute timestamptz, tenant_id bigint, completed bigint, failed bigint, retried bigint,
        crashed bigint, released bigint, snoozed bigint)
    where minute + interval '5 minutes' > now() - interval '90 seconds'
    on conflict (tenant_id, minute, writer) do update
    set completed = excluded.completed, failed = excluded.failed, retried = excluded.retried,
        crashed = excluded.crashed, released = excluded.released, snoozed = excluded.snoozed
    returning minute
)
select distinct extract(epoch from minute)::bigint as minute, false as of_tenants from counted
union all
select distinct extract(epoch from minute)::bigint, true from of_tenants;
