-- End the other sessions of the database, which a test left open.
select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid();
