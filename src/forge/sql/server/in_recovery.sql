-- Whether the server is a standby, which takes no writes.
select pg_catalog.pg_is_in_recovery() as in_recovery;
