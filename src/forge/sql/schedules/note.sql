-- Record that runs are alive, and the checkpoints for the next ones.
-- $1 ids, $2 leases, $3 checkpoints (null: unchanged), $4 true, as in schedules/conclude.
-- Returns the accepted ids.
update forge_schedules as schedule
set last_heartbeat = now(), checkpoint = coalesce(ack.checkpoint::jsonb, schedule.checkpoint)
from unnest($1::uuid[], $2::bigint[], $3::text[]) as ack (id, lease, checkpoint)
where schedule.id = any (array[ack.id]) and schedule.lease = ack.lease
  and (schedule.running_since is not null) = $4
returning schedule.id;
