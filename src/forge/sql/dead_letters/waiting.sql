-- How many dead letters wait for review, by type: from their counts, not from the letters.
select job_type, sum(letters)::bigint as letters
from forge_dead_letter_counts
where status = 'pending_review'
group by job_type
having sum(letters) > 0;
