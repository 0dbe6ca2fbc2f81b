-- Runs after each migration, in its transaction. PUBLIC cannot call Forge's functions, and a
-- function that reads or writes tables, or runs as its owner, never finds a caller's temporary
-- object instead of Forge's: pg_temp is listed last, because PostgreSQL searches it first where it
-- is not listed.
-- Functions with a parsed SQL body (`return …`) were resolved when they were created; a setting
-- would only prevent the planner from inlining them.
do $$
declare
    function record;
begin
    for function in
        select proc.oid::pg_catalog.regprocedure as signature,
               (proc.prosecdef or proc.provolatile = 'v' and proc.prosqlbody is null)
                   and not exists (select from pg_catalog.unnest(proc.proconfig) as setting
                                   where setting like 'search\_path=%') as needs_path
        from pg_catalog.pg_proc as proc
             join pg_catalog.pg_namespace as schema on schema.oid = proc.pronamespace
        where schema.nspname = pg_catalog.current_schema()
          and proc.proname like 'forge\_%' and pg_catalog.pg_has_role(proc.proowner, 'usage')
    loop
        execute pg_catalog.format('revoke execute on function %s from public', function.signature);
        if function.needs_path then
            execute pg_catalog.format('alter function %s set search_path = pg_catalog, %I, pg_temp',
                                      function.signature, pg_catalog.current_schema());
        end if;
    end loop;
end
$$;
