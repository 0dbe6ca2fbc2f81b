-- End a session whose statement no longer has a client. A cancel request may arrive before the
-- statement begins, and a busy session does not notice that its client is gone.
-- $1 the process id of the session
select pg_terminate_backend(pid)
from pg_stat_activity
where pid = $1 and datname = current_database() and usename = current_user and xact_start is not null;
