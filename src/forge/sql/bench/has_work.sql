-- Whether any job is not final yet.
select exists (select from forge_jobs where status in ('pending', 'retry'))
    or exists (select from forge_jobs where status in ('claimed', 'running')) as has_work;
