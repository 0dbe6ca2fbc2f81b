-- The command that creates a database for a benchmark. $1 its name.
select format('create database %I template template0', $1::text) as command;
