-- The oldest transaction, prepared transaction and replication slot that keep vacuum from removing
-- dead rows. Only members of pg_read_all_stats see the age of other roles' sessions.
select 'session' as kind, extract(epoch from now() - min(xact_start))::float8 as seconds,
       coalesce(max(greatest(age(backend_xmin), age(backend_xid))), 0)::bigint as transactions
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
  and (backend_xmin is not null or backend_xid is not null)
union all
select 'prepared', extract(epoch from now() - min(prepared))::float8,
       coalesce(max(age(transaction)), 0)::bigint
from pg_prepared_xacts
where database = current_database()
union all
select 'slot', null, coalesce(max(age(xmin)), 0)::bigint
from pg_replication_slots;
