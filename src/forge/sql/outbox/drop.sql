-- Delete messages that are no longer needed, unless their job has changed when they are due.
-- $1 ids, $2 the times that outbox/take gave them.
delete from forge_outbox as entry
using unnest($1::bigint[], $2::timestamptz[]) as taken (id, send_at)
where entry.id = any (array[taken.id]) and entry.send_at is not distinct from taken.send_at
returning entry.id;
