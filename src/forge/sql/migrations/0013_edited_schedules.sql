-- Schedules that operators edited: what they changed stays when a definition in code writes its row again.

alter table forge_schedules
    -- what was edited by hand ('rule', 'jitter' …): the row of a cron definition keeps it
    add column edited text[] not null default '{}';
