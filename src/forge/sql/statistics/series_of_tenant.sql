-- Outcomes of a tenant's jobs by step. $1 from, $2 until, $3 the step in seconds, $4 the tenant.
select date_bin(make_interval(secs => $3), minute, '2000-01-01 00:00:00+00') as at,
       sum(completed)::bigint as completed, sum(failed)::bigint as failed, sum(retried)::bigint as retried,
       sum(crashed)::bigint as crashed, sum(cancelled)::bigint as cancelled, sum(released)::bigint as released,
       sum(snoozed)::bigint as snoozed, sum(reprocessed)::bigint as reprocessed
from forge_tenant_statistics
where minute >= $1 and minute < $2 and tenant_id = $4
group by at;
