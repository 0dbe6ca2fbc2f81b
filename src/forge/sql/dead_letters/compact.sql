-- Sum up the counts of dead letters: one row per cause, and none for causes without letters.
-- $1 how many rows to sum up. Returns how many rows were read, and how many replaced them.
-- Some rows of a cause may stay, because of the limit or a lock. Then a sum of 0 does not mean that
-- the cause has no letters; it is kept, because it may hold the newest sample.
with taken as materialized (
    delete from forge_dead_letter_counts
    where ctid = any (array(select ctid from forge_dead_letter_counts limit $1 for update skip locked))
    returning *
), rows as (
    select *, 1 as taken, -1 as left_over from taken
    union all
    -- the snapshot still contains the rows taken above
    select tenant_id, status, job_type, category, error_class, exception, place, fingerprint,
           0, null, null, null, 0, 1
    from forge_dead_letter_counts
), summed as (
    insert into forge_dead_letter_counts
    select tenant_id, status, job_type, category, error_class, exception, place, fingerprint,
           sum(letters), min(first_seen), max(last_seen), max(sample)
    from rows
    group by tenant_id, status, job_type, category, error_class, exception, place, fingerprint
    having sum(taken) > 0 and (sum(letters) <> 0 or sum(left_over) > 0)
    returning 1
)
select (select count(*) from taken) as taken, (select count(*) from summed) as kept;
