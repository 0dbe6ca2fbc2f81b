-- The first row that the caller's own query returns. The query is on lines of its own, because it
-- may end with a comment.
select * from (
:query
) as found limit 1;
