-- End a pause, with an audit event. $1 its id, or null; $2 and $3 its type and queue instead, $4 the
-- reason, $5 the actor. Returns no row when there is none, or when it has ended by itself.
with removed as (
    delete from forge_pauses
    where case when $1::uuid is null
               then type is not distinct from $2 and queue is not distinct from $3
               else id = $1 end
      and coalesce(until > now(), true)
    returning *
), audited as (
    insert into forge_audit_events (event, actor, notes, detail)
    select 'pause_removed', $5, $4,
           jsonb_strip_nulls(jsonb_build_object(
               'pause_id', id, 'type', type, 'queue', queue, 'until', until, 'paused_by', actor))
    from removed
)
select * from removed;
