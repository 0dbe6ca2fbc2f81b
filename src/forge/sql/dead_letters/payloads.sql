-- The payloads of dead letters, to redact what their errors quote. $1 ids, $2 the largest payload
-- in bytes to read for a list.
select dlq_id, payload
from forge_dead_letters
where dlq_id = any ($1::bigint[]) and pg_column_size(payload) <= $2::integer;
