-- Change settings for the rest of the transaction. $1 names, $2 values.
select set_config(name, value, true) from unnest($1::text[], $2::text[]) as setting (name, value);
