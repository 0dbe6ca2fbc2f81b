-- Register job types, so that every process can dispatch them. Lists, one entry per type.
insert into forge_job_types
    (name, queue, priority, max_attempts, timeout, worker_capability, category, requires,
     allow_sensitive, idempotent, dead_letter, isolation, retry, input_schema, output_schema,
     description)
select name, queue, priority, max_attempts, timeout, worker_capability, category,
       case when requires is not null then array(select jsonb_array_elements_text(requires::jsonb)) end,
       array(select jsonb_array_elements_text(allow_sensitive::jsonb)), idempotent, dead_letter,
       isolation, retry::jsonb,
       input_schema::jsonb, output_schema::jsonb, description
from unnest($1::text[], $2::text[], $3::integer[], $4::integer[], $5::interval[], $6::text[], $7::text[],
            $8::text[], $9::text[], $10::text[], $11::boolean[], $12::text[], $13::text[], $14::text[],
            $15::text[], $16::text[])
    as type (name, queue, priority, max_attempts, timeout, worker_capability, category, requires,
             allow_sensitive, idempotent, dead_letter, isolation, retry, input_schema, output_schema,
             description)
order by name
on conflict (name) do update
set queue = excluded.queue, priority = excluded.priority, max_attempts = excluded.max_attempts,
    timeout = excluded.timeout, worker_capability = excluded.worker_capability,
    category = excluded.category, requires = excluded.requires,
    allow_sensitive = excluded.allow_sensitive, idempotent = excluded.idempotent,
    dead_letter = excluded.dead_letter, isolation = excluded.isolation, retry = excluded.retry,
    input_schema = excluded.input_schema, output_schema = excluded.output_schema,
    description = excluded.description, updated_at = now()
returning name;
