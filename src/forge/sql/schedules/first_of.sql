-- The first row that the caller's own query returns, which stands in the place of :query.
select * from (:query) as found limit 1;
