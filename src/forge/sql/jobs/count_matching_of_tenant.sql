-- How many of a tenant's newest jobs match, by status and type.
-- $1 to $15 the filter, $16 before this id, $17 from this id on, $18 how many to read. Null means any.
-- The row comparison on (tenant_id, id) forces the index: with an equality the planner might scan
-- the rows of all tenants.
select status, job_type, count(*) filter (where matches) as count, count(*) as looked_at
from (
    select status, job_type, (/* generated filter */
($1::text[] is null or status = any ($1)) and ($2::text is null or job_type = $2) and
($3::text is null or queue = $3) and ($4::integer is null or priority = $4) and
($5::timestamptz is null or created_at >= $5) and ($6::timestamptz is null or created_at < $6) and
($7::text is null or category = $7) and ($8::uuid is null or correlation_id = $8) and
($9::uuid is null or parent_id = $9) and ($10::uuid is null or retry_of = $10) and
($11::bigint is null or tenant_id = $11) and ($12::uuid is null or worker_id = $12) and
($13::text is null or $13 = any (tags)) and ($14::text is null or error_class = $14) and
($15::text is null or idempotency_key = $15) /* end */) is true as matches
    from (
        select * from forge_jobs
        where tenant_id is not null
          and (tenant_id, id) < ($11::bigint, $16) and (tenant_id, id) >= ($11, $17)
        order by tenant_id desc, id desc
        limit $18::bigint
    ) as newest
) as found
group by status, job_type;
