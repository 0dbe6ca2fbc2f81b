vacuum analyze forge_jobs;
