-- Attempts that no longer own their job although their worker has not ended them: the job was
-- cancelled, rescued or deleted. A handler that completed its job itself and continues is not one
-- of them.
-- $1 ids, $2 leases. Returns their ids and leases.
select held.id, held.lease
from unnest($1::uuid[], $2::bigint[]) as held (id, lease)
where not exists (select from forge_jobs as job
                  where job.id = any (array[held.id]) and job.lease = held.lease
                    and job.status = any (array['claimed', 'running', 'completed']));
