-- Every known type.
select * from forge_job_types order by name;
