-- The server's version and settings.
select current_setting('server_version_num')::int as version,
       current_setting('server_version') as version_text,
       current_database()::text as database,
       current_user::text as role,
       pg_is_in_recovery() as is_replica,
       current_setting('fsync') = 'on' as fsync,
       current_setting('synchronous_commit') <> 'off' as synchronous_commit,
       current_setting('autovacuum') = 'on' as autovacuum,
       pg_has_role('pg_read_all_stats', 'usage') as sees_all_sessions,
       clock_timestamp() as clock;
