-- Find jobs that nobody was told of, a step of one lane at a time.
-- $1 lane, $2 and $3 the place in it after which to look, $4 how many to look at, $5 seconds for
-- which they must have been due.
-- Returns how many were looked at, how many got a row in the outbox, and the place of the last.
with looked as materialized (
    select scheduled_at, id
    from forge_jobs
    where status in ('pending', 'retry')
      and forge_lane(job_type, queue, worker_capability, priority) = $1
      and (scheduled_at, id) > ($2, $3)
      and scheduled_at <= now() - make_interval(secs => $5)
    order by scheduled_at, id
    limit $4
), told as (
    insert into forge_outbox (job_id)
    select id from looked
    where not exists (select from forge_outbox as known where known.job_id = any (array[looked.id]))
    on conflict (job_id) do nothing
    returning job_id
), last as (
    select scheduled_at, id from looked order by scheduled_at desc, id desc limit 1
)
select (select count(*) from looked) as looked_at, (select count(*) from told) as told,
       (select scheduled_at from last) as at, (select id from last) as id;
