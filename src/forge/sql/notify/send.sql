-- Tell whoever listens on a channel to look.
select pg_notify($1, $2);
