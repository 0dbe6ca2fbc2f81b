-- Limit how long the statements of this transaction wait for a lock. $1 the time, as text.
select set_config('lock_timeout', $1, true);
