-- A role without the right to grant gets only a warning from PostgreSQL: verify the grants.
do $$
begin
    if not has_column_privilege('forge_api', 'forge_jobs', 'input', 'insert')
        or not has_table_privilege('forge_worker', 'forge_jobs', 'update')
    then
        raise exception '% may not grant on forge_jobs', current_user using errcode = 'insufficient_privilege';
    end if;
end
$$;
