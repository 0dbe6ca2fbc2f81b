-- Makes a driver that begins a transaction with its first statement begin it, as SQLAlchemy does.
select 1;
