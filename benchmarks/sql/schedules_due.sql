-- Whether anything is still due or running.
select exists (select from forge_schedules where last_run_at is null);
