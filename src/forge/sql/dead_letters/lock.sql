-- Lock dead letters under review that a bulk action reviews in this transaction. A worker that is frozen
-- meanwhile loses the transaction, and with it the locks.
-- $1 their ids, $2 the caller's tenant (null: any).
-- Never waits: a letter that another transaction has locked is left out, and tried again later.
with limits as materialized (
    select set_config('idle_in_transaction_session_timeout', '10s', true)
)
select letter.dlq_id
from limits cross join (select unnest($1::bigint[]) as dlq_id order by 1) as wanted
     -- by id alone, see dead_letters/discard
     cross join lateral (select * from forge_dead_letters as letter
                         where letter.dlq_id = wanted.dlq_id and ($2::bigint is null or letter.tenant_id = $2)
                         for update skip locked) as letter
where letter.status = 'pending_review';
