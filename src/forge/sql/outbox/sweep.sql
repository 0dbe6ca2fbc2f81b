-- Insert messages for waiting jobs that have none, one batch of one lane at a time.
-- $1 lane, $2 and $3 the cursor: read jobs after this time and id, $4 how many to read, $5 seconds
-- for which they must have been due.
-- Returns how many were read, how many got a row in the outbox, and the cursor of the last.
with looked as materialized (
    select scheduled_at, id
    from forge_jobs
    where status in ('pending', 'retry')
      and forge_lane(job_type, queue, worker_capability, priority) = $1
      and (scheduled_at, id) > ($2, $3)
      and scheduled_at <= now() - make_interval(secs => $5)
    order by scheduled_at, id
    limit $4
), announced as (
    insert into forge_outbox (job_id)
    select id from looked
    where not exists (select from forge_outbox as known where known.job_id = any (array[looked.id]))
    on conflict (job_id) do nothing
    returning job_id
), last as (
    select scheduled_at, id from looked order by scheduled_at desc, id desc limit 1
)
select (select count(*) from looked) as looked_at, (select count(*) from announced) as announced,
       (select scheduled_at from last) as at, (select id from last) as id;
