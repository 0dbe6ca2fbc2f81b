-- The next dead letters under review, oldest first.
-- $1 return letters after this id, $2 the last id, $3 limit.
-- For the row comparison see dead_letters/list.
select dlq_id
from forge_dead_letters
where (status, dlq_id) > ('pending_review', $1::bigint) and (status, dlq_id) <= ('pending_review', $2::bigint)
order by status, dlq_id
limit $3;
