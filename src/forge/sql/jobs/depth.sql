-- How many jobs are due in each lane, and for how many seconds the first of them has been due.
-- $1 how many jobs of a lane to count at most.
-- One index lookup per lane, and one per counted job.
select job_type, queue, worker_capability, due.count,
       extract(epoch from now() - scheduled_at)::float8 as oldest
from forge_lane_heads() as head
cross join lateral (
    select count(*) as count
    from forge_lane_jobs(head.lane, now(), 'ffffffff-ffff-ffff-ffff-ffffffffffff', $1::bigint)) as due
where scheduled_at <= now();
