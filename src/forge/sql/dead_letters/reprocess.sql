-- Make a new job of each dead letter that is still under review; the letter, its new job, the job's
-- key and the audit are written together. Whoever comes second finds nothing under review.
-- $1 ids, $2 the tenant that asks (null: any), $3 actor, $4 notes, $5 the edited payload (null: as it
-- was), $6 priority (null: as it was), $7 the request that makes them (null: a person).
-- Returns the new jobs.
-- A caller who speaks for itself alone gives the new jobs its own auth; else they keep that of the old.
with caller as materialized (
    select case when forge_is_bound() then forge_caller() end as found
), locked as materialized (
    -- by id alone: by its status there may be a million of them, and only a locked one's is true
    select letter.*
    from (select unnest($1::bigint[]) as dlq_id order by 1) as wanted
         cross join lateral (select * from forge_dead_letters as letter
                             where letter.dlq_id = wanted.dlq_id and ($2::bigint is null or letter.tenant_id = $2)
                             for update) as letter
), letters as (
    select * from locked where status = 'pending_review'
), wishes as materialized (
    select dlq_id, job_id, job_type, category, queue, priority, tenant_id, correlation_id,
           coalesce(forge_payload_version($5::text::jsonb), payload_version) as payload_version,
           coalesce($5::text::jsonb, payload) as payload, forge_uuidv7() as new_job_id,
           forge_retry_key(idempotency_key, dlq_id,
                           extract(epoch from statement_timestamp())
                           + 0.001 * (row_number() over (partition by tenant_id, idempotency_key order by dlq_id) - 1))
               as new_key
    from letters
), made as (
    -- what the type says today holds; the rest is as it was
    insert into forge_jobs
        (id, job_type, input, priority, max_attempts, worker_capability, idempotency_key, queue, tenant_id,
         category, correlation_id, payload_version, auth, traceparent, timeout, retry_of, parent_id,
         concurrency_key, tags, meta)
    select wish.new_job_id, wish.job_type,
           case when wish.category is null then wish.payload
                else wish.payload || jsonb_build_object('idempotency_key', wish.new_key) end,
           coalesce($6::integer, wish.priority), coalesce(type.max_attempts, old.max_attempts, 3),
           case when type.name is null then old.worker_capability else type.worker_capability end,
           wish.new_key, wish.queue, wish.tenant_id, wish.category, wish.correlation_id, wish.payload_version,
           case when caller.found ? 'auth' then nullif(caller.found -> 'auth', 'null') else old.auth end,
           old.traceparent, old.timeout, wish.job_id, $7::uuid, old.concurrency_key, old.tags,
           case when jsonb_typeof(coalesce(old.meta, '{}')) = 'object'
                then coalesce(old.meta, '{}') || jsonb_build_object('dlq_id', wish.dlq_id, 'notes', $4::text)
                else old.meta end
    from wishes as wish cross join caller
         left join forge_jobs as old on old.id = any (array[wish.job_id])
         left join forge_job_types as type on type.name = wish.job_type
), reviewed as (
    update forge_dead_letters as letter
    set status = 'reprocessed', reviewed_at = now(), reviewed_by = $3, notes = $4,
        new_job_id = wish.new_job_id, edited_payload = $5::text::jsonb, request_id = $7::uuid
    from wishes as wish
    where letter.dlq_id = any (array[wish.dlq_id])
), audited as (
    insert into forge_audit_events (event, actor, tenant_id, job_id, dlq_id, notes, detail)
    select 'job_dlq_reprocess_success', $3, tenant_id, job_id, dlq_id, $4,
           jsonb_build_object('new_job_id', new_job_id, 'new_idempotency_key', new_key,
                              'edited', $5::text is not null, 'request_id', $7::uuid)
    from wishes
    order by dlq_id
)
select dlq_id, new_job_id, new_key as new_idempotency_key from wishes order by dlq_id;
