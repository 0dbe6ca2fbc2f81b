-- The workers, oldest first, with the seconds since each one's last heartbeat.
-- $1 only this worker (null: all).
select *, extract(epoch from now() - last_heartbeat)::float8 as silent_for
from forge_workers
where $1::uuid is null or id = $1
order by started_at;
