-- A worker lives, and learns of those that do not and of its peers, who serve the same jobs.
-- $1 to $10 as in workers/register, $11 how many jobs it runs, $12 whether it is draining,
-- $13 seconds of silence after which a worker is dead, $14 a channel to knock at, which proves that
-- its listener hears.
-- Its row is made again where somebody deleted it; `is_current` is false once a later life of the
-- same worker has taken its place.
with mine as (
    insert into forge_workers as known
        (id, incarnation, hostname, pid, version, capabilities, queues, job_types, max_concurrent,
         schedule_types, running, draining)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    on conflict (id) do update
    set last_heartbeat = now(), running = excluded.running, draining = excluded.draining
    where known.incarnation = excluded.incarnation
    returning id
)
select exists (select from mine) as is_current,
       array(select id from forge_workers
             where id <> $1 and last_heartbeat < now() - make_interval(secs => $13)) as dead,
       array(select id from forge_workers
             where last_heartbeat >= now() - make_interval(secs => $13) and not draining
               and capabilities = $6 and queues is not distinct from $7 and job_types = $8
               and schedule_types = $10
             order by id) as peers,
       pg_notify($14, '') is null as knocked,
       case when $11 = 0 then
           exists (select from forge_jobs
                   where status in ('claimed', 'running') and worker_id = $1)
           or exists (select from forge_schedules
                      where running_since is not null and worker_id = $1)
       else false end as owns_any,
       extract(epoch from clock_timestamp())::float8 as now;
