-- Whoever migrates, or grants, holds this lock of the session until it ends.
select pg_advisory_lock($1);
