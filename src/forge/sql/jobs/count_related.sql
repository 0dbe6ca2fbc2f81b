-- How many jobs match that share a parent, an original, a correlation id or a key, by status and type.
-- $1 to $15 the filter, $16 before this id, $17 from this id on, $18 how many to read. Null means any.
-- It reads the index of the first of them that the filter names. For the row comparisons see
-- jobs/page_of_parent.
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
        (select * from forge_jobs
         where parent_id is not null and (parent_id, id) < ($9::uuid, $16) and (parent_id, id) >= ($9, $17)
         order by parent_id desc, id desc limit $18::bigint)
        union all
        (select * from forge_jobs
         where retry_of is not null and (retry_of, id) < ($10::uuid, $16) and (retry_of, id) >= ($10, $17)
           and $9 is null
         order by retry_of desc, id desc limit $18)
        union all
        (select * from forge_jobs
         where idempotency_key is not null and (idempotency_key, id) < ($15::text, $16)
           and (idempotency_key, id) >= ($15, $17) and coalesce($9, $10) is null
         order by idempotency_key desc, id desc limit $18)
        union all
        (select * from forge_jobs
         where correlation_id is not null and (correlation_id, id) < ($8::uuid, $16)
           and (correlation_id, id) >= ($8, $17) and coalesce($9, $10) is null and $15 is null
         order by correlation_id desc, id desc limit $18)
    ) as related
) as found
group by status, job_type;
