-- Whether the current role can create databases.
select rolcreatedb or rolsuper as may_create from pg_roles where rolname = current_user;
