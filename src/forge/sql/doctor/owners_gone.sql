-- Workers without a heartbeat for $1 seconds that still own jobs.
select id, hostname, pid, extract(epoch from now() - last_heartbeat)::float8 as silent_for,
       (select count(*) from forge_jobs
        where status in ('claimed', 'running') and worker_id = known.id) as jobs
from forge_workers as known
where last_heartbeat < now() - make_interval(secs => $1)
  and exists (select from forge_jobs
              where status in ('claimed', 'running') and worker_id = known.id)
order by last_heartbeat;
