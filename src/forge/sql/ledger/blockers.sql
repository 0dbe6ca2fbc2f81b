-- The sessions that hold locks on Forge's tables, the one with the oldest transaction first.
select distinct session.pid, session.usename::text as role, session.application_name as application,
       session.state, extract(epoch from now() - session.xact_start)::float8 as seconds
from pg_locks as held
join pg_class as relation on relation.oid = held.relation
join pg_stat_activity as session on session.pid = held.pid
where held.granted and held.database = (select oid from pg_database where datname = current_database())
  and relation.relname like 'forge\_%' and session.pid <> pg_backend_pid()
order by seconds desc nulls last;
