-- The two roles. They can log in without a password until they get one. Roles belong to the whole
-- server, so another database may have created them.
do $$
declare
    wanted text;
begin
    foreach wanted in array array['forge_api', 'forge_worker'] loop
        if not exists (select from pg_roles where rolname = wanted) then
            begin
                execute format('create role %I login', wanted);
            exception
                when duplicate_object or unique_violation then null;
            end;
        end if;
    end loop;
end
$$;

do $$
begin
    execute format('grant usage on schema %I to forge_api, forge_worker', current_schema());
end
$$;
