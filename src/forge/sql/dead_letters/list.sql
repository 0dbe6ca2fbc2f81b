-- Dead letters, the newest first, a page at a time. $1 status (null: any), $2 the id before which to
-- look, $3 how many.
-- Compared as pairs, which are ordered by one index alone: the planner would rather walk the primary key,
-- past any number of letters that are not meant.
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
