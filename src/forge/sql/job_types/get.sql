-- One registered job type.
select * from forge_job_types where name = $1;
