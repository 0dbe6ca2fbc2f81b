-- How many of the newest jobs match, and how many were read.
-- $1 how many to read, $2 statuses, $3 type, $4 priority, $5 category, $6 correlation id, $7 queue,
-- $8 error class, $9 idempotency key. Null means any.
select count(*) filter (where ($2::text[] is null or status = any ($2)) and ($3::text is null or job_type = $3)
                          and ($4::integer is null or priority = $4) and ($5::text is null or category = $5)
                          and ($6::uuid is null or correlation_id = $6) and ($7::text is null or queue = $7)
                          and ($8::text is null or error_class = $8)
                          and ($9::text is null or idempotency_key = $9)) as matching,
       count(*) as looked_at
from (select status, job_type, priority, category, correlation_id, queue, error_class, idempotency_key
      from forge_jobs order by id desc limit $1::bigint) as newest;
