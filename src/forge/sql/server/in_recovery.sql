-- Whether the server is a standby, which rejects writes.
select pg_catalog.pg_is_in_recovery() as in_recovery;
