-- The workers, oldest first, with the seconds since each one's last heartbeat.
select *, extract(epoch from now() - last_heartbeat)::float8 as silent_for
from forge_workers
order by started_at;
