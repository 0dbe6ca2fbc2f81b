-- End the session that still runs a statement nobody waits for: a request to cancel it may come
-- before it begins, and a session does not notice while it works that its client has gone.
-- $1 the process id of the session
select pg_terminate_backend(pid)
from pg_stat_activity
where pid = $1 and datname = current_database() and usename = current_user and xact_start is not null;
