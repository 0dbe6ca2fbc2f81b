-- The next jobs that a bulk action may change, in the order of their ids, from a limited number of rows.
-- $1 to $15 the filter, $16 after this id, $17 how many rows to read, $18 the index to read: 'parent_id',
-- 'retry_of', 'idempotency_key', 'correlation_id', 'tenant_id', 'ended' (the statuses that are failed,
-- dead_letter or cancelled) or 'id'. Null means any.
-- Returns the ids that match, the last id that was read, and how many rows were read. The built-in jobs
-- are left out: a bulk action would end itself.
-- For the row comparisons see jobs/page_of_parent.
with looked as materialized (
    select id, (/* generated filter */
($1::text[] is null or status = any ($1)) and ($2::text is null or job_type = $2) and
($3::text is null or queue = $3) and ($4::integer is null or priority = $4) and
($5::timestamptz is null or created_at >= $5) and ($6::timestamptz is null or created_at < $6) and
($7::text is null or category = $7) and ($8::uuid is null or correlation_id = $8) and
($9::uuid is null or parent_id = $9) and ($10::uuid is null or retry_of = $10) and
($11::bigint is null or tenant_id = $11) and ($12::uuid is null or worker_id = $12) and
($13::text is null or $13 = any (tags)) and ($14::text is null or error_class = $14) and
($15::text is null or idempotency_key = $15) /* end */) is true
           and not starts_with(job_type, 'forge.') as matches
    from (
        (select * from forge_jobs
         where $18::text = 'parent_id' and parent_id is not null
           and (parent_id, id) > ($9::uuid, $16::uuid)
           and (parent_id, id) <= ($9, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
         order by parent_id, id limit $17::bigint)
        union all
        (select * from forge_jobs
         where $18 = 'retry_of' and retry_of is not null and (retry_of, id) > ($10::uuid, $16)
           and (retry_of, id) <= ($10, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
         order by retry_of, id limit $17)
        union all
        (select * from forge_jobs
         where $18 = 'idempotency_key' and idempotency_key is not null
           and (idempotency_key, id) > ($15::text, $16)
           and (idempotency_key, id) <= ($15, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
         order by idempotency_key, id limit $17)
        union all
        (select * from forge_jobs
         where $18 = 'correlation_id' and correlation_id is not null
           and (correlation_id, id) > ($8::uuid, $16)
           and (correlation_id, id) <= ($8, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
         order by correlation_id, id limit $17)
        union all
        (select * from forge_jobs
         where $18 = 'tenant_id' and tenant_id is not null and (tenant_id, id) > ($11::bigint, $16)
           and (tenant_id, id) <= ($11, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
         order by tenant_id, id limit $17)
        union all
        (select ended.*
         from unnest($1::text[]) as wanted (status)
         cross join lateral (
            select * from forge_jobs
            where $18 = 'ended' and status in ('failed', 'dead_letter', 'cancelled')
              and (status, id) > (wanted.status, $16)
              and (status, id) <= (wanted.status, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
            order by status, id limit $17) as ended
         order by ended.id limit $17)
        union all
        (select * from forge_jobs where $18 = 'id' and id > $16 order by id limit $17)
    ) as next
)
select array(select id from looked where matches order by id) as ids,
       (select id from looked order by id desc limit 1) as last_id,
       (select count(*) from looked) as looked_at;
