-- Lock this transaction against other processes that migrate or grant.
select pg_advisory_xact_lock($1);
