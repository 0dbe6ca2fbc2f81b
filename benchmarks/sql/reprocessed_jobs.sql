-- The jobs that were made of dead letters: how many, of how many letters, and how many completed.
select count(*) as made, count(distinct retry_of) as letters,
       count(*) filter (where status = 'completed') as completed
from forge_jobs
where retry_of is not null
