-- How many seconds a completed canary took, and how many seconds ago it completed, by the
-- database's clock.
-- $1 its id. Measured from the dispatch: a snooze moves scheduled_at.
select
    extract(epoch from completed_at - created_at)::float8 as took,
    greatest(extract(epoch from clock_timestamp() - completed_at), 0)::float8 as ago
from forge_jobs
where id = $1 and status = 'completed';
