-- How many bytes of WAL the server has written since it was initialised.
select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 as bytes;
