-- The health of Forge's tables: dead rows, the last vacuum, and whether they survive a crash.
select relation.relname::text as name, relation.relpersistence = 'u' as is_unlogged,
       pg_total_relation_size(relation.oid) as bytes,
       stat.n_live_tup as live, stat.n_dead_tup as dead,
       extract(epoch from now() - greatest(stat.last_autovacuum, stat.last_vacuum))::float8
           as vacuumed_ago,
       coalesce('autovacuum_enabled=false' = any (relation.reloptions), false) as is_never_vacuumed
from pg_class as relation
join pg_stat_user_tables as stat on stat.relid = relation.oid
where relation.relname like 'forge\_%' and pg_table_is_visible(relation.oid)
order by relation.relname;
