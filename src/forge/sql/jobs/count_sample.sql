-- An estimate of the number of jobs by status and type, from a sample of the table's blocks. $1 how
-- many blocks to read.
select status, job_type, round(count(*) / share)::bigint as count
from forge_jobs tablesample system (least(100, 100 * $1::float8
         / greatest(1, pg_relation_size('forge_jobs') / current_setting('block_size')::float8)))
         repeatable (1),
     (select least(1, $1 / greatest(1, pg_relation_size('forge_jobs')
                                       / current_setting('block_size')::float8)) as share) as part
group by status, job_type, share;
