-- The worker that does what one of all must do: the first of those that live.
-- $1 seconds of silence after which a worker is dead.
select id
from forge_workers
where last_heartbeat >= now() - make_interval(secs => $1)
order by id
limit 1;
