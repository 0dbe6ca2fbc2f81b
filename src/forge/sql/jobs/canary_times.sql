-- How long a completed canary took and how long ago that was, in seconds, by the database's clock.
-- $1 its id. Counted from the dispatch: a canary that was snoozed is scheduled later each time.
select
    extract(epoch from completed_at - created_at)::float8 as took,
    greatest(extract(epoch from clock_timestamp() - completed_at), 0)::float8 as ago
from forge_jobs
where id = $1 and status = 'completed';
