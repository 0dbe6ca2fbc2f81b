-- How many dead letters are under review by type, from their counts rather than the letters. A type
-- without any shows 0, so that an increase to the first one is visible.
select job_type, sum(letters)::bigint as letters
from (select job_type, letters from forge_dead_letter_counts where status = 'pending_review'
      union all
      select name, 0 from forge_job_types) as counted
group by job_type;
