-- Attributes that give roles more than their grants. $1 the roles.
select role.rolname::text as role, role.rolsuper as is_superuser, role.rolbypassrls as bypasses_row_security,
       case when pg_has_role(role.oid, jobs.relowner, 'member') then jobs.relowner::regrole::text end as owner
from pg_roles as role cross join pg_class as jobs
where role.rolname = any ($1::text[]) and jobs.oid = 'forge_jobs'::regclass
order by 1;
