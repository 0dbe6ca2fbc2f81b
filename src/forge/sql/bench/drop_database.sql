-- The command that drops the database of a benchmark. $1 its name.
select format('drop database if exists %I with (force)', $1::text) as command;
