-- One row per applied migration.
create table if not exists forge_migrations (
    version integer primary key,
    name text not null,
    applied_at timestamptz not null default now()
);
