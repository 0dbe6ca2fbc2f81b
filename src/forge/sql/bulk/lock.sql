-- Lock jobs that a bulk action changes in this transaction, if they still match. A worker that is frozen
-- meanwhile loses the transaction, and with it the locks.
-- $1 to $15 the filter, $16 ids. Null means any.
-- Never waits: a job that another transaction has locked is left out, and tried again later. Waiting for
-- one while holding others could end in a deadlock with the acks of a worker.
-- Returns their ids and statuses, and whether they are due.
with limits as materialized (
    select set_config('idle_in_transaction_session_timeout', '10s', true)
)
select id, status, scheduled_at <= now() as is_due
from limits cross join forge_jobs
where id = any ($16::uuid[]) and (/* generated filter */
($1::text[] is null or status = any ($1)) and ($2::text is null or job_type = $2) and
($3::text is null or queue = $3) and ($4::integer is null or priority = $4) and
($5::timestamptz is null or created_at >= $5) and ($6::timestamptz is null or created_at < $6) and
($7::text is null or category = $7) and ($8::uuid is null or correlation_id = $8) and
($9::uuid is null or parent_id = $9) and ($10::uuid is null or retry_of = $10) and
($11::bigint is null or tenant_id = $11) and ($12::uuid is null or worker_id = $12) and
($13::text is null or $13 = any (tags)) and ($14::text is null or error_class = $14) and
($15::text is null or idempotency_key = $15) /* end */)
  and not starts_with(job_type, 'forge.')
order by id
for update of forge_jobs skip locked;
