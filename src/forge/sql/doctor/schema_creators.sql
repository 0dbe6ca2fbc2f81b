-- Roles with CREATE on Forge's schema, except its owner and the owner of the tables.
select quote_ident(schema.nspname) as schema,
       case acl.grantee when 0 then 'PUBLIC' else acl.grantee::regrole::text end as name
from pg_class as jobs
     join pg_namespace as schema on schema.oid = jobs.relnamespace
     cross join lateral aclexplode(schema.nspacl) as acl
     left join pg_roles as role on role.oid = acl.grantee
where jobs.oid = 'forge_jobs'::regclass and acl.privilege_type = 'CREATE'
  and acl.grantee not in (jobs.relowner, schema.nspowner) and role.rolsuper is not true
  and acl.grantee <> (select datdba from pg_database where datname = current_database())
order by 1, 2;
