-- Notify the listeners of a channel.
select pg_notify($1, $2);
