-- The workers, the oldest first, with the seconds since each was last heard of.
select *, extract(epoch from now() - last_heartbeat)::float8 as silent_for
from forge_workers
order by started_at;
