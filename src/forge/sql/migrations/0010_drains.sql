-- Workers that operators drain: they stay alive and claim nothing until they are resumed.

alter table forge_workers
    -- since when it claims nothing, until it is resumed or starts again; null: it claims
    add column drained_at timestamptz,
    add column drained_by text,
    add column drain_reason text;

-- Drains or resumes workers, each with an audit event; null workers are all of them. Returns those that
-- changed. It runs as its owner, so that no role needs the right to write workers for it. A connection
-- that row security binds must act for an operator, and in its own name.
create function forge_set_drained(workers uuid[], is_drained boolean, actor text, reason text)
    returns setof forge_workers language plpgsql security definer as $$
begin
    if forge_is_bound() then
        if not forge_is_operator() then
            raise exception 'only operators drain and resume workers: a worker serves every tenant'
                using errcode = 'insufficient_privilege', hint = 'use a connection that acts for an operator';
        end if;
        perform forge_may_sign(forge_caller(), actor);
    end if;
    return query
    with changed as (
        update forge_workers as worker
        set drained_at = case when is_drained then now() end,
            drained_by = case when is_drained then actor end,
            drain_reason = case when is_drained then reason end
        where (workers is null or worker.id = any (workers)) and (worker.drained_at is null) = is_drained
        returning worker.*
    ), audited as (
        insert into forge_audit_events (event, actor, notes, detail)
        select case when is_drained then 'worker_drained' else 'worker_resumed' end, forge_set_drained.actor, reason,
               jsonb_build_object('worker_id', changed.id, 'hostname', changed.hostname, 'pid', changed.pid)
        from changed
    )
    select * from changed;
end
$$;
