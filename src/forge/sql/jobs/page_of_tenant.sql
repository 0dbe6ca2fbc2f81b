-- A page of a tenant's jobs, newest first, from a limited number of its rows.
-- $1 before this id, $2 from this id on, $3 statuses, $4 type, $5 queue, $6 priority, $7 since, $8
-- until, $9 category, $10 correlation id, $11 error class, $12 idempotency key, $13 how many rows
-- to read, $14 limit, $15 bytes of JSON after which to stop, $16 seconds after which to stop, $17
-- the tenant. Null means any.
-- The last row that was read is returned too: `is_stop` marks it, and `matches` says whether it
-- matches. `is_full` marks the row that exceeds the limit of bytes.
-- The row comparison on (tenant_id, id) forces the index: with an equality the planner might scan
-- the rows of all tenants.
with looked as (
    select *, row_number() over (order by tenant_id desc, id desc) as place
    from forge_jobs
    where tenant_id is not null
      and (tenant_id, id) < ($17::bigint, $1) and (tenant_id, id) >= ($17, $2)
    order by tenant_id desc, id desc
    limit $13::bigint
), found as (
    select *, (($3::text[] is null or status = any ($3)) and ($4::text is null or job_type = $4)
               and ($5::text is null or queue = $5) and ($6::integer is null or priority = $6)
               and ($7::timestamptz is null or created_at >= $7)
               and ($8::timestamptz is null or created_at < $8)
               and ($9::text is null or category = $9)
               and ($10::uuid is null or correlation_id = $10)
               and ($11::text is null or error_class = $11)
               and ($12::text is null or idempotency_key = $12)) is true as matches
    from looked
), chosen as (
    select *, not matches or place = $13 as is_stop
    from found
    where matches or place = $13
       or clock_timestamp() > statement_timestamp() + make_interval(secs => $16)
    order by tenant_id desc, id desc
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
