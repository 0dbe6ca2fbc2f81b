-- Register schedule types, so that every process can ensure their schedules. Lists, one entry per
-- type.
insert into forge_schedule_types (name, priority, worker_capability, input_schema)
select name, priority, worker_capability, input_schema::jsonb
from unnest($1::text[], $2::integer[], $3::text[], $4::text[])
    as type (name, priority, worker_capability, input_schema)
order by name
on conflict (name) do update
set priority = excluded.priority, worker_capability = excluded.worker_capability,
    input_schema = excluded.input_schema, updated_at = now()
returning name;
