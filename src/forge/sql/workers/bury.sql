-- Delete dead workers that own nothing. $1 the workers, $2 seconds without a heartbeat.
delete from forge_workers as gone
where id = any ($1::uuid[]) and last_heartbeat < now() - make_interval(secs => $2)
  and not exists (select from forge_jobs
                  where status in ('claimed', 'running') and worker_id = gone.id)
  and not exists (select from forge_schedules
                  where running_since is not null and worker_id = gone.id)
returning id;
