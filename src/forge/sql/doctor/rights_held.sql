-- Rights on Forge's tables, columns, sequences and functions that PUBLIC or the given roles hold.
-- $1 the roles. Returns each right, with the role that it is inherited from.
with ours as (
    select relnamespace as schema from pg_class where oid = 'forge_jobs'::regclass
), granted as (
    select case relkind when 'S' then 'sequence' else 'table' end as kind, relname as object, relowner as owner,
           null::name as "column", acl.*
    from pg_class join ours on relnamespace = schema cross join lateral aclexplode(relacl) as acl
    where relname like 'forge\_%'
    union all
    select 'table', relname, relowner, attname, acl.*
    from pg_class join ours on relnamespace = schema join pg_attribute on attrelid = pg_class.oid
         cross join lateral aclexplode(attacl) as acl
    where relname like 'forge\_%'
    union all
    select 'function', proname, proowner, null, acl.*
    from pg_proc join ours on pronamespace = schema
         cross join lateral aclexplode(coalesce(proacl, acldefault('f', proowner))) as acl
    where proname like 'forge\_%'
), holder as (
    select 0::oid as oid, 'PUBLIC' as name
    union all
    select oid, rolname from pg_roles where rolname = any ($1::text[]) and not rolsuper
)
select distinct holder.name as role,
       case when granted.grantee <> holder.oid then granted.grantee::regrole::text end as through,
       granted.kind, granted.object::text, granted."column"::text,
       granted.privilege_type || case when granted.is_grantable then ' WITH GRANT OPTION' else '' end as privilege
from granted
     join holder on granted.grantee = holder.oid
                 or granted.grantee <> 0 and holder.oid <> 0 and granted.grantee <> granted.owner
                    and pg_has_role(holder.oid, granted.grantee, 'member')
order by 1, 2 nulls first, 3 desc, 4, 5, 6;
