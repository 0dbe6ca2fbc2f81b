-- Where this worker and the database differ about the schedules that the worker runs, as
-- jobs/reconcile.
-- $1 the worker, $2 its incarnation, $3 and $4 the ids and leases that it knows.
select id, lease, 'unknown run' as finding
from forge_schedules
where running_since is not null and worker_id = $1
  and exists (select from forge_workers where id = $1 and incarnation = $2)
  and not exists (select from unnest($3::uuid[], $4::bigint[]) as held (id, lease)
                  where forge_schedules.id = any (array[held.id]) and held.lease = forge_schedules.lease)
union all
select held.id, held.lease, 'taken'
from unnest($3::uuid[], $4::bigint[]) as held (id, lease)
where not exists (select from forge_schedules as schedule
                  where schedule.id = any (array[held.id]) and schedule.lease = held.lease
                    and coalesce(schedule.running_since <= 'infinity', false));
