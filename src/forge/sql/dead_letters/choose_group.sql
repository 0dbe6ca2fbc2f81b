-- The next dead letters under review with matching causes, oldest first. The matching causes are
-- found in the counts.
-- $1 to $3 as in dead_letters/choose, $4 type, $5 category, $6 error class, $7 fingerprint. Null
-- means any.
with causes as materialized (
    select distinct fingerprint
    from forge_dead_letter_counts
    where status = 'pending_review' and ($4::text is null or job_type = $4)
      and ($5::text is null or category = $5) and ($6::text is null or error_class = $6)
      and ($7::text is null or fingerprint = $7)
)
select letter.dlq_id
from causes
     cross join lateral (
        select dlq_id
        from forge_dead_letters
        where (fingerprint, status, dlq_id) > (causes.fingerprint, 'pending_review', $1::bigint)
          and (fingerprint, status, dlq_id) <= (causes.fingerprint, 'pending_review', $2::bigint)
        order by fingerprint, status, dlq_id
        limit $3) as letter
order by dlq_id
limit $3;
