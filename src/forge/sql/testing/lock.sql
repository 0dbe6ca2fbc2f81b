-- Hold the lock of a test run, or of what test runs prepare in turn, until the session ends.
-- $1 the class of the lock, $2 its number.
select pg_advisory_lock($1::integer, $2::integer);
