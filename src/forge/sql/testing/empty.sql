-- The command that deletes all rows of Forge's tables, except applied migrations: a test leaves few,
-- and to truncate twenty tables takes longer. Counts go last: deleting dead letters changes them.
select string_agg(format('delete from %I.%I', schemaname, tablename), '; '
                  order by tablename = 'forge_dead_letter_counts', tablename) as command
from pg_tables
where schemaname = current_schema() and tablename like 'forge\_%' and tablename <> 'forge_migrations';
