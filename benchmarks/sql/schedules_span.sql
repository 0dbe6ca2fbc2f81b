-- How many schedules have run, and the seconds from the first start to the last end.
select count(*) as runs,
       extract(epoch from max(last_run_at) - min((recent_runs -> 0 ->> 'started_at')::timestamptz))::float8
           as seconds
from forge_schedules
where last_run_at is not null;
