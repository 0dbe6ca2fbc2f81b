-- Lock a schedule until the end of the transaction: later statements see everything committed
-- before, and no other transaction can enable the schedule. $1 the schedule.
select id from forge_schedules where id = $1 for update;
