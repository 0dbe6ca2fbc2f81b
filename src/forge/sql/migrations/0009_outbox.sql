-- Messages for a transport beside PostgreSQL: every waiting job has one row in the outbox, made in the
-- transaction that made it wait and taken away by its claim.

alter table forge_outbox
    add column sends integer not null default 0,
    add constraint forge_outbox_once unique (job_id);
alter table forge_outbox set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01,
                              autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
-- serves outbox/take
create index forge_outbox_due on forge_outbox (send_at);

-- What is due later than a message can be delayed is sent when it no longer is. It runs as its owner:
-- a role that may dispatch need not be able to write messages.
create function forge_tell_of_job() returns trigger
    language plpgsql security definer as $$
declare
    first_send constant timestamptz := greatest(new.scheduled_at - interval '15 minutes', now());
begin
    if tg_op = 'INSERT' then
        insert into forge_outbox (job_id, send_at) values (new.id, first_send);
    else
        insert into forge_outbox (job_id, send_at) values (new.id, first_send)
        on conflict (job_id) do update set send_at = excluded.send_at, sends = 0;
    end if;
    return null;
end
$$;

-- Whoever dispatches or gives back, in whatever way, leaves a row: Python, SQL, COPY, the rescue.
create trigger forge_jobs_tell
    after insert on forge_jobs
    for each row when (new.queue <> 'forge')
    execute function forge_tell_of_job();

create trigger forge_jobs_tell_again
    after update of status, scheduled_at on forge_jobs
    for each row when (
        new.status in ('pending', 'retry') and new.queue <> 'forge'
        and (old.status not in ('pending', 'retry') or new.scheduled_at <> old.scheduled_at)
    )
    execute function forge_tell_of_job();

-- Where PostgreSQL is the transport nobody reads the outbox, and a disabled trigger costs nothing;
-- outbox/enable and outbox/disable switch.
alter table forge_jobs disable trigger forge_jobs_tell, disable trigger forge_jobs_tell_again;
