-- Send messages again soon that could not be sent, unless their job has changed when they are due.
-- $1 ids, $2 the times that outbox/take gave them, $3 seconds until then, $4 whether they were
-- certainly not sent, so that the try does not count.
update forge_outbox as entry
set send_at = now() + make_interval(secs => $3), sends = entry.sends - $4::boolean::integer
from unnest($1::bigint[], $2::timestamptz[]) as taken (id, send_at)
where entry.id = any (array[taken.id]) and entry.send_at is not distinct from taken.send_at
returning entry.id;
