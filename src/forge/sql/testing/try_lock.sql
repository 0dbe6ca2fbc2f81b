-- Take the lock of a test run unless that is alive. $1 the class of the lock, $2 its number.
select pg_try_advisory_lock($1::integer, $2::integer) as is_free;
