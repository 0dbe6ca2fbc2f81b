-- The time after a delay, by the database's clock.
select now() + $1::interval as at;
