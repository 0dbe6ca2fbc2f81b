-- A tenant's dead letters by cause, the most frequent first, with the newest of each as a sample. $1 to $6
-- as in dead_letters/groups, $7 the tenant.
select cause.*, newest.dlq_id as sample, newest.error_message
from (select fingerprint, job_type, category, error_class, exception, place,
             sum(letters)::bigint as letters, min(first_seen) as first_seen, max(last_seen) as last_seen
      from forge_dead_letter_counts
      where tenant_id = $7::bigint
        and ($1::text is null or status = $1) and ($2::text is null or job_type = $2)
        and ($3::text is null or category = $3) and ($4::text is null or error_class = $4)
        and ($5::text is null or fingerprint = $5)
      group by fingerprint, job_type, category, error_class, exception, place
      having sum(letters) > 0
      order by letters desc, fingerprint
      limit $6) as cause
     cross join lateral (
        select letter.*
        from unnest(case when $1::text is null then array['pending_review', 'reprocessed', 'discarded']
                         else array[$1] end) as wanted (status)
             cross join lateral (
                select dlq_id, error_message
                from forge_dead_letters
                where tenant_id is not null
                  and (tenant_id, fingerprint, status, dlq_id) >= ($7, cause.fingerprint, wanted.status, 0)
                  and (tenant_id, fingerprint, status, dlq_id)
                      <= ($7, cause.fingerprint, wanted.status, 9223372036854775807)
                order by tenant_id desc, fingerprint desc, status desc, dlq_id desc
                limit 1) as letter
        order by dlq_id desc
        limit 1) as newest
order by cause.letters desc, cause.fingerprint;
