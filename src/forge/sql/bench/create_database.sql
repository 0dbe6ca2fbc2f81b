-- The command that makes a database for a measurement. $1 its name.
select format('create database %I template template0', $1::text) as command;
