-- A page of the audit events of a tenant, newest first, from a limited number of rows.
-- $1 before this id, $2 from this id on, $3 how many rows to read, $4 limit, $5 event, $6 actor, $7
-- created at or after, $8 created before, $9 tenant. Null means any.
-- The last row that was read is returned too: `is_stop` marks it, and `matches` says whether it
-- matches.
-- The row comparison on (tenant_id, id) forces the tenant's index: with an equality the planner
-- might scan the events of all tenants.
with looked as (
    select *, row_number() over (order by tenant_id desc, id desc) as place
    from forge_audit_events
    where tenant_id is not null
      and (tenant_id, id) < ($9::bigint, $1::bigint) and (tenant_id, id) >= ($9, $2::bigint)
    order by tenant_id desc, id desc
    limit $3::bigint
), found as (
    select *, (($5::text is null or event = $5) and ($6::text is null or actor = $6)
               and ($7::timestamptz is null or created_at >= $7)
               and ($8::timestamptz is null or created_at < $8)
               and ($9::bigint is null or tenant_id = $9)) is true as matches
    from looked
)
select id, event, actor, tenant_id, job_id, dlq_id, schedule_id, notes, detail, created_at, matches,
       not matches or place = $3 as is_stop
from found
where matches or place = $3
order by tenant_id desc, id desc
limit $4;
