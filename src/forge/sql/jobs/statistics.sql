-- How many of the newest $1 jobs there are by status, category, type and error class.
select status, category, job_type, error_class, count(*) as letters
from (select status, category, job_type, error_class from forge_jobs order by id desc limit $1) as newest
group by status, category, job_type, error_class;
