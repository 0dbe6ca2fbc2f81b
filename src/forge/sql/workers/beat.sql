-- Write a worker's heartbeat, and return dead workers and its peers, which serve the same jobs.
-- $1 to $10 as in workers/register, $11 how many jobs it runs, $12 whether it is draining, $13
-- seconds without a heartbeat after which a worker is dead, $14 a channel to notify, which proves
-- that its listener works, $15 to $17 since when, by whom and why it is drained.
-- Inserts the row again if it was deleted, still drained. `is_current` is false once a later process replaced this
-- one. `is_full` is true while the server, or the limit of this role or database, has almost no
-- connection left, so that other workers may be unable to write their heartbeats.
-- Reads neither jobs nor schedules: a lock on those tables must not stop heartbeats.
with mine as (
    insert into forge_workers as known
        (id, incarnation, hostname, pid, version, capabilities, queues, job_types, max_concurrent,
         schedule_types, running, draining, drained_at, drained_by, drain_reason)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $15, $16, $17)
    on conflict (id) do update
    set last_heartbeat = now(), running = excluded.running, draining = excluded.draining
    where known.incarnation = excluded.incarnation
    returning drained_at, drained_by, drain_reason
), alike as (
    select id, drained_at
    from forge_workers
    where last_heartbeat >= now() - make_interval(secs => $13) and not draining
      and capabilities = $6 and queues is not distinct from $7 and job_types = $8
      and schedule_types = $10
), sessions as (
    -- The backend type of another role's session is hidden; sessions without a role serve no client.
    select count(*) as taken,
           count(*) filter (where usesysid = role.oid) as of_role, max(role.rolconnlimit) as for_role,
           count(*) filter (where datid = base.oid) as of_base, max(base.datconnlimit) as for_base,
           current_setting('max_connections')::integer
           - current_setting('superuser_reserved_connections')::integer
           - coalesce(current_setting('reserved_connections', true), '0')::integer as places
    from pg_stat_get_activity(null) as session, pg_roles as role, pg_database as base
    where coalesce(session.backend_type, 'client backend') = 'client backend'
      and session.usesysid is not null
      and role.rolname = session_user and base.datname = current_database()
)
select exists (select from mine) as is_current,
       array(select id from forge_workers
             where id <> $1 and last_heartbeat < now() - make_interval(secs => $13)) as dead,
       array(select id from alike where drained_at is null order by id) as peers,
       coalesce($1 = (select id from alike order by id limit 1), false) as is_first,
       (select drained_at from mine) as drained_at,
       (select drained_by from mine) as drained_by,
       (select drain_reason from mine) as drain_reason,
       (select taken >= places - greatest(places / 50, 1)
               or of_role >= for_role and for_role >= 0
               or of_base >= for_base and for_base >= 0
        from sessions) as is_full,
       pg_notify($14, '') is null as knocked,
       extract(epoch from clock_timestamp())::float8 as now;
