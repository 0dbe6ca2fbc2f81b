-- Hold a schedule until the end of the transaction: what is asked next sees everything that was
-- committed before, and nobody enables the schedule meanwhile. $1 the schedule.
select id from forge_schedules where id = $1 for update;
