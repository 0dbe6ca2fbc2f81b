-- A migration was applied.
insert into forge_migrations (version, name) values ($1, $2);
