-- Disabled triggers, and indexes whose build did not finish. The triggers of the outbox do not
-- count: they are disabled where PostgreSQL is the transport.
select 'trigger' as kind, tgname::text as name, tgrelid::regclass::text as "table"
from pg_trigger
where tgname like 'forge\_%' and tgname not like 'forge\_jobs\_outbox%' and tgenabled = 'D' and pg_table_is_visible(tgrelid)
union all
select 'index', index.relname, pg_index.indrelid::regclass::text
from pg_index
join pg_class as index on index.oid = pg_index.indexrelid
where index.relname like 'forge\_%' and not pg_index.indisvalid and pg_table_is_visible(index.oid);
