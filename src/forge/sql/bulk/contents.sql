-- Jobs whose content a bulk action compares, in the order of their ids, with what their types show.
-- $1 ids, $2 bytes of inputs after which the rest is left out.
with sized as materialized (
    select id, sum(octet_length(input::text)) over (order by id) - octet_length(input::text) as bytes
    from forge_jobs
    where id = any ($1::uuid[])
)
select job.*, type.allow_sensitive
from sized
     cross join lateral (select * from forge_jobs where id = sized.id) as job
     left join forge_job_types as type on type.name = job.job_type
where sized.bytes < $2::bigint
order by job.id;
