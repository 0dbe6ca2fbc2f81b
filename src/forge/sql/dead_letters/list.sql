-- A page of dead letters, newest first. $1 status (null: any), $2 return letters before this id, $3
-- limit.
-- The row comparison on (status, dlq_id) is ordered by one index only. Otherwise the planner
-- prefers the primary key and filters any number of letters with another status.
select letter.*
from unnest(case when $1::text is null then array['pending_review', 'reprocessed', 'discarded'] else array[$1] end)
         as wanted (status)
     cross join lateral (
        select dlq_id, job_id, job_type, category, queue, priority, tenant_id, correlation_id, idempotency_key,
               payload_version, error_class, exception, error_message, place, fingerprint, attempt_count, crashes,
               original_created_at, original_scheduled_at, created_at, status, reviewed_at, reviewed_by, notes,
               new_job_id
        from forge_dead_letters
        where (status, dlq_id) < (wanted.status, $2::bigint) and (status, dlq_id) >= (wanted.status, 0)
        order by status desc, dlq_id desc
        limit $3) as letter
order by dlq_id desc
limit $3;
