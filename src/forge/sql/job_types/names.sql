-- The names of all registered job types.
select name from forge_job_types order by name;
