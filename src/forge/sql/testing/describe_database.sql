-- The command that sets the comment of a database. $1 its name, $2 the comment.
select format('comment on database %I is %L', $1::text, $2::text) as command;
