-- Fails where an earlier statement of the transaction has failed: a commit would silently roll
-- back.
select 1;
