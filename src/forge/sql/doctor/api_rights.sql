-- The role of this session, and whether it can do more with jobs than the API needs.
-- $1 the role of the API. Also whether that role exists, and whether this login can switch to it.
select session_user::text as login,
       current_user::text as role,
       has_table_privilege('forge_jobs', 'update') or has_table_privilege('forge_jobs', 'delete') as may_move,
       exists (
           select from pg_catalog.pg_roles
           where rolname = $1
             and has_any_column_privilege(oid, to_regclass('forge_jobs')::oid, 'insert')
             and pg_has_role(
                 session_user, oid,
                 case when current_setting('server_version_num')::integer >= 160000 then 'SET' else 'MEMBER' end
             )
       ) as may_take_role;
