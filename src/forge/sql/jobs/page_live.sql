-- A page of jobs that wait or run, newest first and of any age, for a table with few of them.
-- $1 before this id, $2 from this id on, $3 statuses, $4 type, $5 queue, $6 priority, $7 since, $8
-- until, $9 category, $10 correlation id, $11 error class, $12 idempotency key, $13 how many rows
-- to read, $14 limit, $15 bytes of JSON after which to stop, $16 the tenant. Null means any.
-- `is_full` marks the row that exceeds the limit of bytes.
with looked as (
    (select * from forge_jobs
     where status in ('pending', 'retry') and $3::text[] && array['pending', 'retry']
     limit $13::bigint)
    union all
    (select * from forge_jobs
     where status in ('claimed', 'running') and $3 && array['claimed', 'running']
     limit $13)
), chosen as (
    select *, true as matches, false as is_stop
    from looked
    where id < $1 and id >= $2 and ($16::bigint is null or tenant_id = $16)
      and ($3::text[] is null or status = any ($3)) and ($4::text is null or job_type = $4)
      and ($5::text is null or queue = $5) and ($6::integer is null or priority = $6)
      and ($7::timestamptz is null or created_at >= $7)
      and ($8::timestamptz is null or created_at < $8)
      and ($9::text is null or category = $9)
      and ($10::uuid is null or correlation_id = $10)
      and ($11::text is null or error_class = $11)
      and ($12::text is null or idempotency_key = $12)
    order by id desc
    limit $14
), measured as (
    select *, octet_length(input::text) + coalesce(octet_length(output::text), 0)
              + coalesce(octet_length(checkpoint::text), 0)
              + coalesce(octet_length(meta::text), 0) as size
    from chosen
), summed as (
    select *, sum(size) over (order by id desc) as spent from measured
)
select *, spent > $15::bigint as is_full
from summed
where spent - size <= $15
order by id desc;
