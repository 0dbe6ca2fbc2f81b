-- How many of the newest jobs there are by status and type. $1 how many to read.
select status, job_type, count(*) as count
from (select status, job_type from forge_jobs order by id desc limit $1::bigint) as newest
group by status, job_type;
