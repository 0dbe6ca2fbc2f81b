-- Create a new job for each dead letter that is still under review. The letter, the job, its
-- idempotency key and the audit event are written together; a second caller finds nothing under
-- review.
-- $1 ids, $2 the caller's tenant (null: any), $3 actor, $4 notes, $5 the edited payload (null:
-- unchanged), $6 priority (null: unchanged), $7 the request job that creates them (null: a person).
-- Returns the new jobs.
-- A session that acts for a single caller gives the new jobs that caller's auth; otherwise they
-- keep the old one.
with caller as materialized (
    select case when forge_is_bound() then forge_caller() end as found
), locked as materialized (
    -- By id alone: a million letters may have that status, and only the status of a locked row is current.
    select letter.*
    from (select unnest($1::bigint[]) as dlq_id order by 1) as wanted
         cross join lateral (select * from forge_dead_letters as letter
                             where letter.dlq_id = wanted.dlq_id and ($2::bigint is null or letter.tenant_id = $2)
                             for update) as letter
), letters as (
    select * from locked where status = 'pending_review'
), new_jobs as materialized (
    select dlq_id, job_id, job_type, category, queue, priority, tenant_id, correlation_id,
           coalesce(forge_payload_version($5::text::jsonb), payload_version) as payload_version,
           coalesce($5::text::jsonb, payload) as payload, forge_uuidv7() as new_job_id,
           forge_retry_key(idempotency_key, dlq_id,
                           extract(epoch from statement_timestamp())
                           + 0.001 * (row_number() over (partition by tenant_id, idempotency_key order by dlq_id) - 1))
               as new_key
    from letters
), made as (
    -- The current settings of the type apply; everything else is copied from the old job.
    insert into forge_jobs
        (id, job_type, input, priority, max_attempts, worker_capability, idempotency_key, queue, tenant_id,
         category, correlation_id, payload_version, auth, retry_of, parent_id, meta,
         /* generated copies */
         timeout, traceparent, tags /* end */)
    select new_job.new_job_id, new_job.job_type,
           case when new_job.category is null then new_job.payload
                else new_job.payload || jsonb_build_object('idempotency_key', new_job.new_key) end,
           coalesce($6::integer, new_job.priority), coalesce(type.max_attempts, old.max_attempts, 3),
           case when type.name is null then old.worker_capability else type.worker_capability end,
           new_job.new_key, new_job.queue, new_job.tenant_id, new_job.category, new_job.correlation_id, new_job.payload_version,
           case when caller.found ? 'auth' then nullif(caller.found -> 'auth', 'null') else old.auth end,
           new_job.job_id, $7::uuid,
           case when jsonb_typeof(coalesce(old.meta, '{}')) = 'object'
                then coalesce(old.meta, '{}') || jsonb_build_object('dlq_id', new_job.dlq_id, 'notes', $4::text)
                else old.meta end,
           /* generated copies of old */
           old.timeout, old.traceparent, old.tags /* end */
    from new_jobs as new_job cross join caller
         left join forge_jobs as old on old.id = any (array[new_job.job_id])
         left join forge_job_types as type on type.name = new_job.job_type
), reviewed as (
    update forge_dead_letters as letter
    set status = 'reprocessed', reviewed_at = now(), reviewed_by = $3, notes = $4,
        new_job_id = new_job.new_job_id, edited_payload = $5::text::jsonb, request_id = $7::uuid
    from new_jobs as new_job
    where letter.dlq_id = any (array[new_job.dlq_id])
), audited as (
    insert into forge_audit_events (event, actor, tenant_id, job_id, dlq_id, notes, detail)
    select 'job_dlq_reprocess_success', $3, tenant_id, job_id, dlq_id, $4,
           jsonb_build_object('new_job_id', new_job_id, 'new_idempotency_key', new_key,
                              'edited', $5::text is not null, 'request_id', $7::uuid)
    from new_jobs
    order by dlq_id
), counted as (
    -- A row that no other session writes: the API may insert here, and read or update nothing.
    insert into forge_statistics (minute, job_type, queue, writer, reprocessed)
    select date_bin('1 minute', now(), '2000-01-01 00:00:00+00'), job_type, queue, forge_uuidv7(), count(*)
    from new_jobs group by job_type, queue
), counted_of_tenants as (
    insert into forge_tenant_statistics (minute, tenant_id, writer, reprocessed)
    select date_bin('5 minutes', now(), '2000-01-01 00:00:00+00'), tenant_id, forge_uuidv7(), count(*)
    from new_jobs where tenant_id is not null and queue <> 'forge' group by tenant_id
)
select dlq_id, new_job_id, new_key as new_idempotency_key from new_jobs order by dlq_id;
