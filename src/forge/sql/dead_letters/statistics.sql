-- How many dead letters there are by status, category, type and error class. $1 tenant (null: any).
select status, category, job_type, error_class, sum(letters)::bigint as letters
from forge_dead_letter_counts
where $1::bigint is null or tenant_id = $1
group by status, category, job_type, error_class
having sum(letters) <> 0;
