-- The command that renames a database. $1 its name, $2 the new one.
select format('alter database %I rename to %I', $1::text, $2::text) as command;
