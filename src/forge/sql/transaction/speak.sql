-- Use this client encoding until the end of the transaction.
select set_config('client_encoding', $1, true);
