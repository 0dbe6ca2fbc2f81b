-- Store lines of attempts that still hold their lease, also once they have ended.
-- $1 ids and $2 leases of the attempts; for each line: $3 its job, $4 the lease, $5 the kind, $6 the
-- place, $7 the number, $8 how many seconds ago it was written, $9 the level, $10 the message, $11 the
-- fields, $12 the percentage. Returns the ids of the accepted attempts.
with accepted as materialized (
    select job.id, job.lease, job.tenant_id
    from unnest($1::uuid[], $2::bigint[]) as attempt (id, lease)
    join forge_jobs as job on job.id = any (array[attempt.id]) and job.lease = attempt.lease
), stored as (
    insert into forge_attempt_logs as known
        (job_id, lease, kind, slot, number, tenant_id, at, level, message, fields, percent)
    select accepted.id, accepted.lease, line.kind, line.slot, line.number, accepted.tenant_id,
           now() - make_interval(secs => line.age), line.level, line.message, line.fields::jsonb, line.percent
    from unnest($3::uuid[], $4::bigint[], $5::text[], $6::integer[], $7::bigint[], $8::float8[], $9::text[],
                $10::text[], $11::text[], $12::integer[])
        as line (job_id, lease, kind, slot, number, age, level, message, fields, percent)
    join accepted on accepted.id = line.job_id and accepted.lease = line.lease
    on conflict (job_id, lease, kind, slot) do update
    set number = excluded.number, at = excluded.at, level = excluded.level, message = excluded.message,
        fields = excluded.fields, percent = excluded.percent
    where known.number < excluded.number
)
select id from accepted;
