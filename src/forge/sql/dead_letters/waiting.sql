-- How many dead letters wait for review, by type: from their counts, not from the letters. A type that
-- has none shows 0, so that its first are seen to be more.
select job_type, sum(letters)::bigint as letters
from (select job_type, letters from forge_dead_letter_counts where status = 'pending_review'
      union all
      select name, 0 from forge_job_types) as counted
group by job_type;
