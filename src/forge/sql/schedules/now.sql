-- The database's time, which schedules are planned by.
select now() as now;
