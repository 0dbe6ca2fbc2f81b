-- How many dead letters match, and the highest id that ever matched.
-- $1 status, $2 type, $3 category, $4 error class, $5 fingerprint, $6 tenant. Null means any.
select coalesce(sum(letters), 0)::bigint as letters,
       coalesce(max(sample), 0) as newest
from forge_dead_letter_counts
where ($1::text is null or status = $1) and ($2::text is null or job_type = $2)
  and ($3::text is null or category = $3) and ($4::text is null or error_class = $4)
  and ($5::text is null or fingerprint = $5) and ($6::bigint is null or tenant_id = $6);
