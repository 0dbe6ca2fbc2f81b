-- Where applied migrations are written down.
create table if not exists forge_migrations (
    version integer primary key,
    name text not null,
    applied_at timestamptz not null default now()
);
