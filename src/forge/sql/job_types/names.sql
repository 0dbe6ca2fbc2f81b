-- The names of all known types.
select name from forge_job_types order by name;
