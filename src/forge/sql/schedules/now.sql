-- The database's time, by which schedules are planned.
select now() as now;
