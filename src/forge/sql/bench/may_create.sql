-- Whether the current role may make databases.
select rolcreatedb or rolsuper as may_create from pg_roles where rolname = current_user;
