-- Register a worker. It replaces an earlier process with the same id.
insert into forge_workers as known
    (id, incarnation, hostname, pid, version, capabilities, queues, job_types, max_concurrent,
     schedule_types)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (id) do update
set incarnation = excluded.incarnation, hostname = excluded.hostname, pid = excluded.pid,
    version = excluded.version, capabilities = excluded.capabilities, queues = excluded.queues,
    job_types = excluded.job_types, max_concurrent = excluded.max_concurrent,
    schedule_types = excluded.schedule_types, running = 0, draining = false, started_at = now(),
    drained_at = null, drained_by = null, drain_reason = null,
    last_heartbeat = now()
returning id;
