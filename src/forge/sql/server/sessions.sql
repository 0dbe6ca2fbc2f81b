-- The age of sessions and how long they have been idle (null while they are active, and where the
-- server does not show it). $1 their process ids.
select pid,
       extract(epoch from clock_timestamp() - backend_start)::float8 as age,
       case when state in ('idle', 'idle in transaction', 'idle in transaction (aborted)')
            then extract(epoch from clock_timestamp() - state_change)::float8 end as idle_for
from pg_catalog.pg_stat_activity
where pid = any ($1::integer[]) and datname = current_database();
