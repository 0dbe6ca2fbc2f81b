-- Record an applied migration.
insert into forge_migrations (version, name) values ($1, $2);
