-- Sum up the counts of dead letters: one row per cause, and none for causes that have no letters left.
-- $1 how many rows to sum up. Returns how many there were.
with taken as materialized (
    delete from forge_dead_letter_counts
    where ctid = any (array(select ctid from forge_dead_letter_counts limit $1 for update skip locked))
    returning *
), summed as (
    insert into forge_dead_letter_counts
    select tenant_id, status, job_type, category, error_class, exception, place, fingerprint,
           sum(letters), min(first_seen), max(last_seen), max(sample)
    from taken
    group by tenant_id, status, job_type, category, error_class, exception, place, fingerprint
    having sum(letters) <> 0
)
select count(*) as taken from taken;
