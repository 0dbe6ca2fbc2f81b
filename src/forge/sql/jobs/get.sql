-- One job with all its columns.
select * from forge_jobs where id = any ($1::uuid[]);
