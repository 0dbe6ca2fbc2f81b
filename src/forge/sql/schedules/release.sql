-- Release schedules that their worker does not run after all, where the lease still holds.
-- $1 ids, $2 leases.
update forge_schedules as schedule
set running_since = null, updated_at = now()
from unnest($1::uuid[], $2::bigint[]) as ack (id, lease)
where schedule.id = any (array[ack.id]) and schedule.lease = ack.lease
returning schedule.id;
