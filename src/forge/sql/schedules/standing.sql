-- Which runs have a record of this outcome, to distinguish an ack that was written before its
-- answer was lost from one that came too late. $1 ids, $2 leases, $3 outcomes.
select schedule.id
from unnest($1::uuid[], $2::bigint[], $3::text[]) as ack (id, lease, outcome)
join forge_schedules as schedule on schedule.id = any (array[ack.id])
where schedule.recent_runs
      @> jsonb_build_array(jsonb_build_object('lease', ack.lease, 'outcome', ack.outcome));
