-- Pause a type, a queue, or a type in a queue, with an audit event. It replaces a pause of the same
-- target; pauses that have ended are deleted, too. Needs pauses/lock.
-- $1 id, $2 type, $3 queue (null: every one), $4 when it ends, $5 or after how long (both null: when
-- it is removed), $6 the reason, $7 the actor.
-- Returns no row when it would end in the past.
with removed as (
    delete from forge_pauses
    where (type is not distinct from $2 and queue is not distinct from $3 or until <= now())
      and coalesce($4::timestamptz > now(), true)
    returning id, type, queue, until
), added as (
    insert into forge_pauses (id, type, queue, until, reason, actor)
    select $1, $2, $3, coalesce($4::timestamptz, now() + $5::interval), $6, $7
    -- the deletion comes first, because the target is unique
    where (select count(*) from removed) >= 0 and coalesce($4::timestamptz > now(), true)
    returning *
), audited as (
    insert into forge_audit_events (event, actor, notes, detail)
    select 'pause_added', actor, reason,
           jsonb_strip_nulls(jsonb_build_object(
               'pause_id', id, 'type', type, 'queue', queue, 'until', until,
               'replaces', (select removed.id from removed
                            where removed.type is not distinct from added.type
                              and removed.queue is not distinct from added.queue
                              and coalesce(removed.until > now(), true))))
    from added
)
select * from added;
