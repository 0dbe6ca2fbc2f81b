-- The transactions committed in this database so far.
select xact_commit from pg_stat_database where datname = current_database();
