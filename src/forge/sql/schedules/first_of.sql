-- The first row that the caller's own query returns. It stands on lines of its own, since it may
-- end with a comment.
select * from (
:query
) as found limit 1;
