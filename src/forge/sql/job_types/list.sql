-- All registered job types.
select * from forge_job_types order by name;
