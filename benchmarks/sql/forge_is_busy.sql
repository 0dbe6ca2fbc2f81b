-- Whether any job is not final; two looks at partial indexes.
select exists (select from forge_jobs where status in ('pending', 'retry'))
    or exists (select from forge_jobs where status in ('claimed', 'running'));
