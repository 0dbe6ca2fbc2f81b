-- The lanes of jobs that may not have been dispatched yet, in the order of the lists.
-- $1 job types, $2 queues, $3 capabilities, $4 priorities.
select forge_lane(job_type, queue, worker_capability, priority) as lane
from unnest($1::text[], $2::text[], $3::text[], $4::integer[])
    with ordinality as named (job_type, queue, worker_capability, priority, place)
order by place;
