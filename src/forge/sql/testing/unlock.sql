-- Give a lock back. $1 the class of the lock, $2 its number.
select pg_advisory_unlock($1::integer, $2::integer);
