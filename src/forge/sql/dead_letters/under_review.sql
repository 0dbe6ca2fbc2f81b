-- Which of these dead letters are under review. $1 ids.
select letter.dlq_id
from unnest($1::bigint[]) as wanted (dlq_id)
     cross join lateral (select * from forge_dead_letters as letter
                         where letter.dlq_id = wanted.dlq_id offset 0) as letter
where letter.status = 'pending_review'
order by 1;
