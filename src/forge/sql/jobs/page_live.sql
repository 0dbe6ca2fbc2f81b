-- Jobs that wait or are being processed, the newest first, however old they are: for a table that
-- has few of them. $1 before which id, $2 from which id on, $3 statuses, $4 type, $5 queue,
-- $6 priority, $7 since, $8 until, $9 how many rows to look at, $10 how many to return, $11 bytes of
-- JSON after which to stop, $12 the tenant, $13 category, $14 correlation id. Null means any.
-- `is_full` marks the row with which the page became too long.
with looked as (
    (select * from forge_jobs
     where status in ('pending', 'retry') and $3::text[] && array['pending', 'retry']
     limit $9::bigint)
    union all
    (select * from forge_jobs
     where status in ('claimed', 'running') and $3 && array['claimed', 'running']
     limit $9)
), chosen as (
    select *, true as matches, false as is_stop
    from looked
    where id < $1 and id >= $2 and status = any ($3) and ($4::text is null or job_type = $4)
      and ($5::text is null or queue = $5) and ($6::integer is null or priority = $6)
      and ($7::timestamptz is null or created_at >= $7)
      and ($8::timestamptz is null or created_at < $8)
      and ($12::bigint is null or tenant_id = $12)
      and ($13::text is null or category = $13) and ($14::uuid is null or correlation_id = $14)
    order by id desc
    limit $10
), measured as (
    select *, octet_length(input::text) + coalesce(octet_length(output::text), 0)
              + coalesce(octet_length(checkpoint::text), 0)
              + coalesce(octet_length(meta::text), 0) as size
    from chosen
), summed as (
    select *, sum(size) over (order by id desc) as spent from measured
)
select *, spent > $11::bigint as is_full
from summed
where spent - size <= $11
order by id desc;
