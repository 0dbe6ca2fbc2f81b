-- The databases with names like this. $1 a pattern of LIKE.
select datname::text as name from pg_database where datname like $1 order by datname;
