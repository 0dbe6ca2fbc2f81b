-- Superusers that own Forge's tables, sequences or functions.
with ours as (
    select relnamespace as schema from pg_class where oid = 'forge_jobs'::regclass
), owned as (
    select relowner as owner from pg_class join ours on relnamespace = schema
    where relname like 'forge\_%' and relkind in ('r', 'S')
    union
    select proowner from pg_proc join ours on pronamespace = schema where proname like 'forge\_%'
)
select rolname::text as name from owned join pg_roles on pg_roles.oid = owned.owner where rolsuper order by 1;
