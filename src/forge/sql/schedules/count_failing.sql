-- How many enabled schedules failed in their last $1 runs or more, and those that failed most often.
-- $2 how many to count at most, $3 how many to name.
with failing as materialized (
    select id, type, key, consecutive_failures
    from forge_schedules
    where enabled and consecutive_failures > 0 and consecutive_failures >= $1::integer
    order by consecutive_failures desc
    limit $2::bigint
)
select (select count(*) from failing) as count,
       coalesce((select jsonb_agg(to_jsonb(named))
                 from (select * from failing order by consecutive_failures desc, id limit $3::bigint) as named),
                '[]') as named;
