-- A run lives; what it wants the next one to find is kept.
-- $1 ids, $2 leases, $3 checkpoints (null: as they are), $4 true, as in schedules/conclude.
-- Returns the ids that were accepted.
update forge_schedules as schedule
set last_heartbeat = now(), checkpoint = coalesce(ack.checkpoint::jsonb, schedule.checkpoint)
from unnest($1::uuid[], $2::bigint[], $3::text[]) as ack (id, lease, checkpoint)
where schedule.id = any (array[ack.id]) and schedule.lease = ack.lease
  and (schedule.running_since is not null) = $4
returning schedule.id;
