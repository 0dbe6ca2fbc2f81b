-- Forget final jobs whose time is over, in the order of their ids, a small batch at a time.
-- $1 the id after which to look, $2 how many to look at, $3 seconds to keep what completed, $4
-- seconds to keep the rest (null: for ever). What is under review is kept.
-- An id begins with the time it was made: what was made within the shorter of the two times is too
-- young to look at.
-- Returns the last id looked at, how many were looked at, and how many went.
with looked as materialized (
    select id, status, coalesce(completed_at, failed_at) as ended_at
    from forge_jobs
    where id > $1
      and id < rpad(lpad(to_hex((extract(epoch from now() - make_interval(secs => least($3::float8, $4::float8))) * 1000)::bigint),
                         12, '0'), 32, '0')::uuid
    order by id
    limit $2
), old as materialized (
    select id from looked
    where (status = 'completed' and ended_at < now() - make_interval(secs => $3)
           or status in ('failed', 'cancelled', 'dead_letter')
              and ended_at < now() - make_interval(secs => $4))
      and not exists (select from forge_dead_letters as letter
                      where letter.job_id = any (array[looked.id]) and letter.status = 'pending_review')
), gone as (
    delete from forge_jobs where id = any (array(select id from old)) returning id
), attempts as (
    delete from forge_attempts where job_id = any (array(select id from old))
)
select (select id from looked order by id desc limit 1) as looked_until,
       (select count(*) from looked) as looked_at,
       (select count(*) from gone) as gone;
