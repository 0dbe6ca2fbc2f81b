-- The jobs that wait or run and that a bulk action may change, in the order of their ids, for a table
-- with few of them.
-- $1 to $15 the filter, $16 after this id, $17 how many of either to read. Null means any.
-- Returns the ids that match, and whether all were read.
with waiting as materialized (
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
    from (select * from forge_jobs
          where status in ('pending', 'retry') and $1::text[] && array['pending', 'retry']
          limit $17::bigint) as job
), owned as materialized (
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
    from (select * from forge_jobs
          where status in ('claimed', 'running') and $1 && array['claimed', 'running']
          limit $17) as job
)
select array(select id from (select * from waiting union all select * from owned) as live
             where matches and id > $16::uuid order by id) as ids,
       (select count(*) from waiting) < $17 and (select count(*) from owned) < $17 as is_all;
