-- A page of a tenant's dead letters with matching causes, newest first.
-- $1 to $7 as in dead_letters/list_group, $8 the tenant.
with causes as materialized (
    select distinct fingerprint, status
    from forge_dead_letter_counts
    where tenant_id = $8::bigint
      and ($1::text is null or status = $1) and ($4::text is null or job_type = $4)
      and ($5::text is null or category = $5) and ($6::text is null or error_class = $6)
      and ($7::text is null or fingerprint = $7)
), chosen as materialized (
    select letter.dlq_id
    from causes
         cross join lateral (
            select dlq_id
            from forge_dead_letters
            where tenant_id is not null
              and (tenant_id, fingerprint, status, dlq_id)
                  < ($8::bigint, causes.fingerprint, causes.status, $2::bigint)
              and (tenant_id, fingerprint, status, dlq_id) >= ($8, causes.fingerprint, causes.status, 0)
            order by tenant_id desc, fingerprint desc, status desc, dlq_id desc
            limit $3) as letter
    order by dlq_id desc
    limit $3
)
select letter.dlq_id, job_id, job_type, category, queue, priority, tenant_id, correlation_id, idempotency_key,
       payload_version, error_class, exception, error_message, place, fingerprint, attempt_count, crashes,
       original_created_at, original_scheduled_at, created_at, status, reviewed_at, reviewed_by, notes,
       new_job_id
from chosen join forge_dead_letters as letter on letter.dlq_id = any (array[chosen.dlq_id])
order by chosen.dlq_id desc;
