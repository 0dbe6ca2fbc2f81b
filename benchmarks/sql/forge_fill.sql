-- Many jobs of one kind. $1 how many, $2 type, $3 priority, $4 capability, $5 seconds from now.
insert into forge_jobs (id, job_type, input, priority, worker_capability, scheduled_at)
select forge_uuidv7(), $2, '{"user_id": 42, "template": "welcome"}', $3, $4,
       now() + make_interval(secs => $5)
from generate_series(1, $1::integer);
