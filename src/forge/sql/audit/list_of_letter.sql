-- A page of the audit events of a dead letter, newest first, from a limited number of rows.
-- $1 before this id, $2 from this id on, $3 how many rows to read, $4 limit, $5 event, $6 actor, $7
-- created at or after, $8 created before, $9 tenant, $10 the dead letter. Null means any.
-- The last row that was read is returned too: `is_stop` marks it, and `matches` says whether it
-- matches.
with looked as (
    select *, row_number() over (order by id desc) as place
    from forge_audit_events
    where dlq_id = $10::bigint and id < $1::bigint and id >= $2::bigint
    order by id desc
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
order by id desc
limit $4;
