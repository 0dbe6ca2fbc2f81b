-- Delete completed canaries. $1 their ids.
delete from forge_jobs
where id = any ($1::uuid[]) and job_type = 'forge.canary'
  and status in ('completed', 'failed', 'cancelled', 'dead_letter')
returning id;
