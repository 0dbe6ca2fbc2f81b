-- Merge the rows of several writers, or of several steps, into one row per step and tenant.
-- Parameters and result as in statistics/merge.
with steps as materialized (
    select make_interval(secs => $3) as length, timestamptz '2000-01-01 00:00:00+00' as origin,
           date_bin(make_interval(secs => $3), now() - make_interval(secs => $2), '2000-01-01 00:00:00+00') as bound
), due as materialized (
    select distinct date_bin(length, minute, origin) as at, tenant_id
    from steps
    cross join lateral (
        select * from forge_tenant_statistics where minute >= $1 and minute < bound order by minute) as own
    where minute <> date_bin(length, minute, origin) or writer <> '00000000-0000-0000-0000-000000000000'
    order by 1, 2
    limit $4
), taken as materialized (
    delete from forge_tenant_statistics as own
    using due, steps
    where own.minute >= due.at and own.minute < due.at + steps.length and own.tenant_id = due.tenant_id
    returning own.*, due.at
), merged as (
    insert into forge_tenant_statistics
        (minute, tenant_id, completed, failed, retried, crashed, cancelled, released, snoozed, reprocessed)
    select at, tenant_id, sum(completed), sum(failed), sum(retried), sum(crashed), sum(cancelled), sum(released),
           sum(snoozed), sum(reprocessed)
    from taken
    group by at, tenant_id
    returning 1
)
select (select count(*) from merged) as made, (select bound from steps) as bound;
