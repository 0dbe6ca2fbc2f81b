-- The command that removes the database of a measurement. $1 its name.
select format('drop database if exists %I with (force)', $1::text) as command;
