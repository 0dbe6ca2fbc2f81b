-- The command that empties the tables of Forge, except applied migrations and keys for signatures.
select 'truncate ' || string_agg(format('%I.%I', schemaname, tablename), ', ') || ' restart identity' as command
from pg_tables
where schemaname = current_schema() and tablename like 'forge\_%'
  and tablename not in ('forge_migrations', 'forge_signing_keys');
