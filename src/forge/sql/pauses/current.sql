-- The pauses in effect, oldest first.
select id, type, queue, until, reason, actor, created_at
from forge_pauses
where coalesce(until > now(), true)
order by created_at, id;
