-- Create a new job for each final job, with the settings of its type as they are now and the rest of
-- the old job, and an audit event unless a bulk action asks for it. Jobs that are not final, and
-- built-in ones, are left out.
-- $1 ids, $2 the caller's tenant (null: any), $3 the reason, $4 the actor, $5 the edited input (null:
-- unchanged), $6 priority (null: unchanged), $7 queue (null: unchanged), $8 when to run (null: now),
-- $9 the delay (null: none), $10 the auth of the new jobs (null: that of the old ones), $11 the bulk
-- job that asks for it (null: none): it makes one new job of each, however often it asks.
-- A session that acts for a single caller gives the new jobs that caller's auth.
-- Returns the old and the new jobs.
with caller as materialized (
    select case when forge_is_bound() then forge_caller() end as found
), old as materialized (
    select job.*, forge_uuidv7() as new_id, coalesce($5::text::jsonb, job.input) as new_input,
           case when $11::uuid is not null then 'rerun_' || $11::uuid || '_' || job.id
                when job.idempotency_key is not null
                then forge_retry_key(job.idempotency_key, null, extract(epoch from clock_timestamp())) end as new_key
    from forge_jobs as job
    where job.id = any ($1::uuid[]) and ($2::bigint is null or job.tenant_id = $2)
      and job.status = any (array['completed', 'failed', 'dead_letter', 'cancelled'])
      and not starts_with(job.job_type, 'forge.')
), wanted as materialized (
    select old.*
    from old
    where $11::uuid is null
       -- Two lookups, since no index serves "is not distinct from"; PostgreSQL 18 alone skips through it.
       or (not exists (select from forge_idempotency_keys as known
                       where known.tenant_id is null and old.tenant_id is null
                         and known.key = any (array[old.new_key]))
           and not exists (select from forge_idempotency_keys as known
                           where known.tenant_id = any (array[old.tenant_id])
                             and known.key = any (array[old.new_key])))
), made as (
    insert into forge_jobs
        (id, job_type, input, priority, max_attempts, worker_capability, idempotency_key, queue, tenant_id,
         category, correlation_id, payload_version, scheduled_at, auth, retry_of, parent_id, meta,
         /* generated copies */
         timeout, traceparent, tags /* end */)
    select wanted.new_id, wanted.job_type,
           case when wanted.category is null then wanted.new_input
                else wanted.new_input || jsonb_build_object('idempotency_key', wanted.new_key) end,
           coalesce($6::integer, wanted.priority), coalesce(type.max_attempts, wanted.max_attempts),
           case when type.name is null then wanted.worker_capability else type.worker_capability end,
           wanted.new_key, coalesce($7::text, wanted.queue), wanted.tenant_id, wanted.category, wanted.correlation_id,
           coalesce(forge_payload_version(wanted.new_input), wanted.payload_version),
           coalesce($8::timestamptz, now()) + coalesce($9::interval, '0'),
           case when caller.found ? 'auth' then nullif(caller.found -> 'auth', 'null')
                else coalesce($10::text::jsonb, wanted.auth) end,
           wanted.id, $11::uuid, wanted.meta,
           /* generated copies of wanted */
           wanted.timeout, wanted.traceparent, wanted.tags /* end */
    from wanted cross join caller
         left join forge_job_types as type on type.name = wanted.job_type
    returning id, retry_of
), audited as (
    insert into forge_audit_events (event, actor, tenant_id, job_id, notes, detail)
    select 'job_rerun', $4, wanted.tenant_id, wanted.id, $3,
           jsonb_build_object('new_job_id', wanted.new_id, 'edited', $5::text is not null)
    from wanted
    where $11 is null
)
select retry_of as id, id as new_id from made;
