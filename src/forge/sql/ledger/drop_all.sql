-- Drops all of Forge's tables, functions and sequences in the current schema, with every job in them:
-- names that begin with forge_ are Forge's. Views, foreign keys and triggers that depend on them go
-- too. Run it by hand, as the owner; no code runs it.
do $$
declare
    statement text;
begin
    perform pg_catalog.set_config('client_min_messages', 'warning', true);
    -- An array, so that every name is read before the first object goes: drops cascade.
    foreach statement in array array(
        select pg_catalog.format('drop table if exists %s cascade', relation.oid::pg_catalog.regclass)
        from pg_catalog.pg_class as relation
        where relation.relnamespace = pg_catalog.current_schema()::pg_catalog.regnamespace
          and relation.relkind = 'r' and relation.relname like 'forge\_%'
        union all
        select pg_catalog.format('drop function if exists %s cascade', function.oid::pg_catalog.regprocedure)
        from pg_catalog.pg_proc as function
        where function.pronamespace = pg_catalog.current_schema()::pg_catalog.regnamespace
          and function.proname like 'forge\_%'
        union all
        select 'drop sequence if exists forge_numbers'
    ) loop
        execute statement;
    end loop;
end
$$;
