-- Take every waiting job through claim and completion, in two statements.
with claimed as (
    update forge_jobs
    set status = 'running', lease = lease + 1, version = version + 1, attempts = attempts + 1,
        worker_id = gen_random_uuid(),
        claimed_at = now(), started_at = now()
    where status = 'pending'
    returning id
)
select count(*) from claimed;
