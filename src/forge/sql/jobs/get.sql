-- One job, all of it.
select * from forge_jobs where id = any ($1::uuid[]);
