-- The next dead letters under review, the oldest first. $1 the id after which to look, $2 the last one,
-- $3 how many. Compared as pairs: see dead_letters/list.
select dlq_id
from forge_dead_letters
where (status, dlq_id) > ('pending_review', $1::bigint) and (status, dlq_id) <= ('pending_review', $2::bigint)
order by status, dlq_id
limit $3;
