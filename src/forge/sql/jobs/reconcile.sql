-- Where this worker and the database differ about the jobs that the worker owns.
-- $1 the worker, $2 its incarnation, $3 and $4 the ids and leases that it knows.
-- Returns its jobs in the database that it does not know (the answer to a claim was lost), and
-- those it holds that it no longer owns (cancelled, or rescued from it). Jobs that a later process
-- of the same worker claimed are ignored.
select id, lease, job_type, 'unknown' as finding
from forge_jobs
where status in ('claimed', 'running') and worker_id = $1
  and exists (select from forge_workers where id = $1 and incarnation = $2)
  and not exists (select from unnest($3::uuid[], $4::bigint[]) as held (id, lease)
                  where forge_jobs.id = any (array[held.id]) and held.lease = forge_jobs.lease)
union all
select held.id, held.lease, null, 'taken'
from unnest($3::uuid[], $4::bigint[]) as held (id, lease)
where not exists (select from forge_jobs as job
                  where job.id = any (array[held.id]) and job.lease = held.lease
                    and job.status = any (array['claimed', 'running']));
