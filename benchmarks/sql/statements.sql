-- How many statements of Forge's this server has run.
select coalesce(sum(calls), 0)::bigint from pg_stat_statements where query like '%forge\_%';
