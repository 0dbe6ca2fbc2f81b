-- Delete final jobs past their retention, in the order of their ids, in small batches.
-- $1 read jobs after this id, $2 how many to read, $3 seconds to keep completed jobs, $4 seconds to
-- keep other final jobs (null: forever), $5 whether to read ids of the future.
-- Jobs whose dead letter is under review are kept.
-- An id begins with the time of its creation, so that jobs younger than the shorter retention are
-- not read. Ids that are not version 7, or come from a fast clock, look like ids of the future: $5
-- reads them.
-- Returns the last id that was read, how many were read, and how many were deleted.
with bounds as materialized (
    select rpad(lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0'), 32, '0')::uuid as id
    from (select case when $5 then now() + interval '1 hour'
                      else now() - make_interval(secs => least($3::float8, $4::float8)) end) as bound (moment)
), looked as materialized (
    select id, status, coalesce(completed_at, failed_at, cancelled_at) as ended_at
    from forge_jobs
    where id > case when $5 then greatest($1, (select id from bounds)) else $1 end
      and id < case when $5 then 'ffffffff-ffff-ffff-ffff-ffffffffffff' else (select id from bounds) end
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
), logs as (
    delete from forge_attempt_logs where job_id = any (array(select id from old))
)
select (select id from looked order by id desc limit 1) as looked_until,
       (select count(*) from looked) as looked_at,
       (select count(*) from gone) as gone;
