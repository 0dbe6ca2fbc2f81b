-- Deletes every job, schedule and record, and keeps job types, signing keys and migrations. For test
-- databases: it locks each table that has rows.
do $$
declare
    name text;
    has_rows boolean;
begin
    for name in
        select relation.oid::pg_catalog.regclass::text
        from pg_catalog.pg_class as relation
        join pg_catalog.pg_class as ledger on ledger.oid = pg_catalog.to_regclass('forge_migrations')
        where relation.relnamespace = ledger.relnamespace
          and relation.relkind = 'r' and relation.relname like 'forge\_%'
          and relation.relname not in
              ('forge_migrations', 'forge_signing_keys', 'forge_job_types', 'forge_schedule_types')
    loop
        execute pg_catalog.format('select exists (select from %s)', name) into has_rows;
        if has_rows then
            execute pg_catalog.format('truncate %s', name);
        end if;
    end loop;
end
$$;
