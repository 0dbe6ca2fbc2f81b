-- Statements of this transaction wait at most this long for a lock. $1 the time, as text.
select set_config('lock_timeout', $1, true);
