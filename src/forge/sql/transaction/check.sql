-- Fails where an earlier statement of the transaction has failed: a commit would say nothing of it
-- and roll back.
select 1;
