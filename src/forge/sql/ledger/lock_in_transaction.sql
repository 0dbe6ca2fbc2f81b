-- The same for one transaction.
select pg_advisory_xact_lock($1);
