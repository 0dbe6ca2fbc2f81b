-- Attempts that are over though their worker has not ended them: the job was cancelled, rescued or
-- deleted. $1 ids, $2 leases. A handler may have completed its job itself, and go on.
-- Returns their ids and leases.
select held.id, held.lease
from unnest($1::uuid[], $2::bigint[]) as held (id, lease)
where not exists (select from forge_jobs as job
                  where job.id = any (array[held.id]) and job.lease = held.lease
                    and job.status = any (array['claimed', 'running', 'completed']));
