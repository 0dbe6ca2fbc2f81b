-- Whether this server rejects writes: a standby, or a primary that was set read-only. A session's
-- own READ ONLY transaction does not count.
select pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean as is_read_only;
