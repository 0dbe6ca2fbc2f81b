-- What is known of a type of schedules.
select name, priority, worker_capability, input_schema from forge_schedule_types where name = $1;
