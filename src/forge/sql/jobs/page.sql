-- A page of jobs, newest first, from a limited number of rows.
-- $1 to $15 the filter, $16 before this id, $17 from this id on, $18 how many rows to read, $19 limit,
-- $20 bytes of JSON after which to stop, $21 seconds after which to stop, $22 whether to leave input,
-- output, checkpoint and meta out. Null means any.
-- The last row that was read is returned too: `is_stop` marks it, and `matches` says whether it
-- matches. `is_full` marks the row that exceeds the limit of bytes.
with looked as (
    select *, row_number() over (order by id desc) as place
    from forge_jobs
    where id < $16 and id >= $17
    order by id desc
    limit $18::bigint
), found as (
    select *, (/* generated filter */
($1::text[] is null or status = any ($1)) and ($2::text is null or job_type = $2) and
($3::text is null or queue = $3) and ($4::integer is null or priority = $4) and
($5::timestamptz is null or created_at >= $5) and ($6::timestamptz is null or created_at < $6) and
($7::text is null or category = $7) and ($8::uuid is null or correlation_id = $8) and
($9::uuid is null or parent_id = $9) and ($10::uuid is null or retry_of = $10) and
($11::bigint is null or tenant_id = $11) and ($12::uuid is null or worker_id = $12) and
($13::text is null or $13 = any (tags)) and ($14::text is null or error_class = $14) and
($15::text is null or idempotency_key = $15) /* end */) is true as matches
    from looked
), chosen as (
    select *, not matches or place = $18 as is_stop
    from found
    where matches or place = $18
       or clock_timestamp() > statement_timestamp() + make_interval(secs => $21)
    order by id desc
    limit $19
), shown as (
    select /* generated all but payloads */
 id, lease, version, status, worker_id, attempts, max_attempts, priority, crashes, scheduled_at,
 created_at, lone_crashes, progress_percent, suspect, job_type, queue, worker_capability,
 progress_message, last_error, error_class, idempotency_key, claimed_at, started_at, completed_at,
 failed_at, cancelled_at, last_heartbeat, expires_at, timeout, tenant_id, category, correlation_id,
 payload_version, auth, traceparent, retry_of, parent_id, tags, original_scheduled_at /* end */,
           -- What is shown without its input may still quote a secret that only the input reveals.
           case when not $22::boolean or last_error is not null or progress_message is not null
                     or tags is not null or idempotency_key is not null then input end as input,
           case when not $22 then output end as output,
           case when not $22 then checkpoint end as checkpoint,
           case when not $22 then meta end as meta,
           matches, is_stop, place
    from chosen
), measured as (
    select *, coalesce(octet_length(input::text), 0) + coalesce(octet_length(output::text), 0)
              + coalesce(octet_length(checkpoint::text), 0)
              + coalesce(octet_length(meta::text), 0) as size
    from shown
), summed as (
    select *, sum(size) over (order by id desc) as spent from measured
)
select *, spent > $20::bigint as is_full
from summed
where spent - size <= $20
order by id desc;
