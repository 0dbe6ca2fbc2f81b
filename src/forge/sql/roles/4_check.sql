-- Whoever may not grant is only warned: see that the rights are there.
do $$
begin
    if not has_column_privilege('forge_api', 'forge_jobs', 'input', 'insert')
        or not has_table_privilege('forge_worker', 'forge_jobs', 'update')
    then
        raise exception '% may not grant on forge_jobs', current_user using errcode = 'insufficient_privilege';
    end if;
end
$$;
