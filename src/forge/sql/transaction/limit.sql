-- Limit the locks of this transaction: it ends if its worker is frozen, and it does not wait for others
-- for ever.
select set_config('idle_in_transaction_session_timeout', '10s', true), set_config('lock_timeout', '20s', true);
