-- How many dead letters each cause got in each step of the latest period; a count ends at a limit.
-- $1 fingerprints, $2 status (null: any), $3 seconds of a step, $4 number of steps, $5 the highest
-- count. The last step is the present one.
-- Ids grow with time (forge_new_number), so each step is a range of the index. For the row
-- comparison see dead_letters/list.
with period as materialized (
    select date_bin(make_interval(secs => $3::float8), now(), '2000-01-01 00:00:00+00')
           - make_interval(secs => $3::float8 * ($4::integer - 1)) as began
), steps as materialized (
    select number, ((extract(epoch from began) - 1577836800 + number * $3) * 1000000)::bigint << 2 as low,
           ((extract(epoch from began) - 1577836800 + (number + 1) * $3) * 1000000)::bigint << 2 as high
    from period cross join generate_series(0, $4::integer - 1) as number
)
select cause.fingerprint, period.began,
       array(select (select count(*)
                     from (select letter.dlq_id
                           from unnest(case when $2::text is null then array['pending_review', 'reprocessed', 'discarded']
                                            else array[$2] end) as wanted (status)
                                cross join lateral (
                                   select dlq_id
                                   from forge_dead_letters
                                   where (fingerprint, status, dlq_id) >= (cause.fingerprint, wanted.status, steps.low)
                                     and (fingerprint, status, dlq_id) < (cause.fingerprint, wanted.status, steps.high)
                                   order by fingerprint, status, dlq_id
                                   limit $5) as letter
                           limit $5) as few)
             from steps
             order by number) as counts
from unnest($1::text[]) as cause (fingerprint) cross join period;
