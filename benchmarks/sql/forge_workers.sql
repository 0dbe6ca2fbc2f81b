-- How many workers there are.
select count(*) from forge_workers;
