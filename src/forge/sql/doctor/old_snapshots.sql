-- What keeps vacuum from removing dead rows: transactions open for more than $1 seconds, prepared
-- transactions that were not ended, and replication slots that are far behind.
select 'session' as kind, coalesce(application_name, '') as name, pid::text as id, state,
       extract(epoch from now() - xact_start)::float8 as seconds,
       coalesce(age(backend_xmin), age(backend_xid), 0)::bigint as transactions
from pg_stat_activity
where datname = current_database() and xact_start < now() - make_interval(secs => $1)
  and (backend_xmin is not null or backend_xid is not null or state like 'idle in transaction%')
  and pid <> pg_backend_pid() and backend_type = 'client backend'
union all
select 'prepared', owner::text, gid, 'prepared',
       extract(epoch from now() - prepared)::float8, age(transaction)::bigint
from pg_prepared_xacts
where database = current_database() and prepared < now() - make_interval(secs => $1)
union all
select 'slot', slot_name::text, slot_name::text, case when active then 'active' else 'inactive' end,
       null, age(xmin)::bigint
from pg_replication_slots
where xmin is not null and age(xmin) > 1000000
order by transactions desc;
