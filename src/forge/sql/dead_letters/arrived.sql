-- How many dead letters that wait for review were added in the last $1 seconds, by type. $2 how many to read
-- at most. The number of a dead letter is made of its time, as in forge_new_number().
select job_type, count(*) as letters
from (select job_type
      from forge_dead_letters
      where status = 'pending_review'
        and dlq_id >= ((extract(epoch from now()) - $1::float8 - 1577836800) * 1000000)::bigint << 2
      order by dlq_id desc
      limit $2::bigint) as newest
group by job_type
order by letters desc, job_type;
