-- Dead letters by cause, most frequent first, each with its newest letter as a sample.
-- $1 status, $2 type, $3 category, $4 error class, $5 fingerprint, $6 tenant (null: any), $7 how
-- many groups.
select cause.*, letter.error_message
from (select fingerprint, job_type, category, error_class, exception, place,
             sum(letters)::bigint as letters, min(first_seen) as first_seen, max(last_seen) as last_seen,
             max(sample) as sample
      from forge_dead_letter_counts
      where ($1::text is null or status = $1) and ($2::text is null or job_type = $2)
        and ($3::text is null or category = $3) and ($4::text is null or error_class = $4)
        and ($5::text is null or fingerprint = $5) and ($6::bigint is null or tenant_id = $6)
      group by fingerprint, job_type, category, error_class, exception, place
      having sum(letters) > 0
      order by letters desc, fingerprint
      limit $7) as cause
     left join forge_dead_letters as letter on letter.dlq_id = any (array[cause.sample])
order by cause.letters desc, cause.fingerprint;
