-- How many workers there are in each state, and the slots of those that are alive.
-- $1 seconds without a heartbeat after which a worker is dead.
select now() as at,
       count(*) filter (where is_alive and not draining and drained_at is null) as alive,
       count(*) filter (where is_alive and not draining and drained_at is not null) as drained,
       count(*) filter (where is_alive and draining) as draining,
       count(*) filter (where not is_alive) as dead,
       coalesce(sum(running) filter (where is_alive), 0)::bigint as in_use,
       coalesce(sum(max_concurrent) filter (where is_alive), 0)::bigint as total
from (select *, last_heartbeat > now() - make_interval(secs => $1) as is_alive from forge_workers) as known;
