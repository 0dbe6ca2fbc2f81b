-- The payloads of dead letters, to know what must not be shown of their errors. $1 ids, $2 the bytes
-- up to which a payload is read for a list.
select dlq_id, payload
from forge_dead_letters
where dlq_id = any ($1::bigint[]) and pg_column_size(payload) <= $2::integer;
