-- $1 jobs of a type that no worker runs, due in an hour.
insert into forge_jobs (job_type, queue, scheduled_at, input)
select 'later', 'later', now() + interval '1 hour', jsonb_build_object('n', n)
from generate_series(1, $1::bigint) as n
