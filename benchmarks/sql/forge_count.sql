select count(*) from forge_jobs
