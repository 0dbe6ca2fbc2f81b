-- The next dead letters of a tenant under review with matching causes, oldest first.
-- $1 to $7 as in dead_letters/choose_group, $8 the tenant.
with causes as materialized (
    select distinct fingerprint
    from forge_dead_letter_counts
    where tenant_id = $8::bigint and status = 'pending_review' and ($4::text is null or job_type = $4)
      and ($5::text is null or category = $5) and ($6::text is null or error_class = $6)
      and ($7::text is null or fingerprint = $7)
)
select letter.dlq_id
from causes
     cross join lateral (
        select dlq_id
        from forge_dead_letters
        where tenant_id is not null
          and (tenant_id, fingerprint, status, dlq_id)
              > ($8::bigint, causes.fingerprint, 'pending_review', $1::bigint)
          and (tenant_id, fingerprint, status, dlq_id)
              <= ($8, causes.fingerprint, 'pending_review', $2::bigint)
        order by tenant_id, fingerprint, status, dlq_id
        limit $3) as letter
order by dlq_id
limit $3;
