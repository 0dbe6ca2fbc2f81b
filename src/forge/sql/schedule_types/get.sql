-- One registered schedule type.
select name, priority, worker_capability, input_schema from forge_schedule_types where name = $1;
