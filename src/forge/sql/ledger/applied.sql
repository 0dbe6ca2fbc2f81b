-- The versions that were applied.
select version from forge_migrations;
