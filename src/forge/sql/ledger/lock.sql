-- Lock the session against other processes that migrate or grant, until it ends.
select pg_advisory_lock($1);
