-- The owners of jobs that have no row in forge_workers.
-- One index lookup per owner.
with recursive owners as (
    (select worker_id from forge_jobs
     where status in ('claimed', 'running') order by worker_id limit 1)
    union all
    select (select worker_id from forge_jobs
            where status in ('claimed', 'running') and worker_id > owners.worker_id
            order by worker_id limit 1)
    from owners
    where owners.worker_id is not null
)
select worker_id from owners
where worker_id is not null
  and not exists (select from forge_workers where id = worker_id);
