-- The first live worker, which does the work that one worker does for all.
-- $1 seconds without a heartbeat after which a worker is dead.
select id
from forge_workers
where last_heartbeat >= now() - make_interval(secs => $1)
order by id
limit 1;
