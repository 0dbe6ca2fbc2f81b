-- Drain or resume workers, each with an audit event.
-- $1 the workers (null: all), $2 whether they are drained, $3 the actor, $4 the reason.
-- Returns the ids of those that changed.
select id from forge_set_drained($1::uuid[], $2::boolean, $3::text, $4::text);
