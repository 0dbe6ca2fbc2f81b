-- What is known of a type.
select * from forge_job_types where name = $1;
