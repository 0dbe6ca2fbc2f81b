-- Switch to a role, for the rest of the transaction ($2) or the session, where it exists, has its
-- grants in this database, and this login can switch to it. $1 the role. Returns a row if it
-- switched.
select set_config('role', $1, $2) as role
from pg_catalog.pg_roles
where rolname = $1
  and has_any_column_privilege(oid, to_regclass('forge_jobs')::oid, 'insert')
  and pg_has_role(
      session_user, oid,
      case when current_setting('server_version_num')::integer >= 160000 then 'SET' else 'MEMBER' end
  );
