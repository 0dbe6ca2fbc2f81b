-- Delete keys past their retention whose job is final or deleted. $1 seconds to keep, $2 limit.
with old as materialized (
    select ctid as place
    from forge_idempotency_keys as known
    where created_at < now() - make_interval(secs => $1)
      and not exists (select from forge_jobs as job
                      where job.id = any (array[known.job_id])
                        and job.status <> all (array['completed', 'failed', 'dead_letter', 'cancelled']))
    order by created_at
    limit $2
    for update skip locked
)
delete from forge_idempotency_keys
where ctid = any (array(select place from old))
returning key;
