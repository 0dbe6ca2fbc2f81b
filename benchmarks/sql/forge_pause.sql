-- Pause one type, and nothing else. $1 the type; null: nothing is paused.
with ended as (
    delete from forge_pauses where type is distinct from $1::varchar
)
insert into forge_pauses (type, reason) select $1, 'benchmark' where $1 is not null
on conflict do nothing;
