-- $1 schedules that are due, spread over the last minute.
insert into forge_schedules (type, key, payload, every, next_run_at)
select 'no_op_run', n::text, '{"feed_id": 42}', interval '1 day', now() - make_interval(secs => 60.0 * n / $1)
from generate_series(1, $1::integer) as n;
