-- Insert a schedule, or enable and update the one that exists. That one keeps its time, unless its
-- rule changes or it has none, and changes only in what $17 names. It is written in any case, so
-- that this statement and schedules/lock wait for each other.
-- $1 an id for it, $2 type, $3 key, $4 tenant, $5 payload, $6 when to run first (null: now), $7 the
-- tick of that run, $8 every, $9 cron, $10 time zone, $11 missed, $12 jitter, $13 priority, $14
-- capability, $15 timeout, $16 whether to enable a disabled one, $17 what was given: 'rule',
-- 'payload', 'missed' and so on. The definition in code, which enables none, leaves alone what was edited.
insert into forge_schedules as known
    (id, type, key, tenant_id, payload, next_run_at, tick_at, every, cron, tz, missed, jitter,
     priority, worker_capability, timeout)
values ($1, $2, $3, $4, $5, coalesce($6, now()), $7, $8, $9, $10, $11, $12, $13, $14, $15)
on conflict on constraint forge_schedules_once do update
set enabled = known.enabled or $16,
    next_run_at = case
        when known.next_run_at is null
             or 'rule' = any ($17::text[]) and ($16 or 'rule' <> all (known.edited))
                and (known.every, known.cron, known.tz)
                    is distinct from (excluded.every, excluded.cron, excluded.tz)
        then excluded.next_run_at
        -- ticks while it was disabled do not count as missed
        when not known.enabled and $16 and known.missed <> 'once' and known.running_since is null
        then greatest(known.next_run_at, now())
        else known.next_run_at end,
    tick_at = case
        when known.next_run_at is null
             or 'rule' = any ($17::text[]) and ($16 or 'rule' <> all (known.edited))
                and (known.every, known.cron, known.tz)
                    is distinct from (excluded.every, excluded.cron, excluded.tz)
        then excluded.tick_at
        when not (not known.enabled and $16 and known.missed <> 'once' and known.running_since is null
                  and known.next_run_at < now()) then known.tick_at
        -- the ticks of `every` stay on their grid
        when known.every is not null
        then coalesce(known.tick_at, known.next_run_at)
             + floor(extract(epoch from now() - coalesce(known.tick_at, known.next_run_at))
                     / extract(epoch from known.every)) * known.every
        when known.missed = 'skip' then coalesce(known.tick_at, known.next_run_at) end,
    every = case when 'rule' = any ($17) and ($16 or 'rule' <> all (known.edited)) then excluded.every
            else known.every end,
    cron = case when 'rule' = any ($17) and ($16 or 'rule' <> all (known.edited)) then excluded.cron
           else known.cron end,
    tz = case when 'rule' = any ($17) and ($16 or 'rule' <> all (known.edited)) then excluded.tz
         else known.tz end,
    payload = case when 'payload' = any ($17) then excluded.payload else known.payload end,
    missed = case when 'missed' = any ($17) and ($16 or 'missed' <> all (known.edited)) then excluded.missed
             else known.missed end,
    jitter = case when 'jitter' = any ($17) and ($16 or 'jitter' <> all (known.edited)) then excluded.jitter
             else known.jitter end,
    priority = case when 'priority' = any ($17) and ($16 or 'priority' <> all (known.edited)) then excluded.priority
               else known.priority end,
    worker_capability = case when 'worker_capability' = any ($17) and ($16 or 'worker_capability' <> all (known.edited)) then excluded.worker_capability
                        else known.worker_capability end,
    timeout = case when 'timeout' = any ($17) then excluded.timeout else known.timeout end,
    edited = case when $16 then array(select unnest(known.edited) except select unnest($17)) else known.edited end,
    updated_at = now()
returning *;
