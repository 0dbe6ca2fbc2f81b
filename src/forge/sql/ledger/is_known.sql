-- Whether any migration was ever applied.
select to_regclass('forge_migrations') is not null as known;
