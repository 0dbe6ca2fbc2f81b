-- The applied migrations.
select version, name from forge_migrations;
