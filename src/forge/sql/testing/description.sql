-- The comment of a database. $1 its name.
select shobj_description(oid, 'pg_database') as description from pg_database where datname = $1;
