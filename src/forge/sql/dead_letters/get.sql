-- One dead letter with its payload and all its attempts. $1 its id, $2 the caller's tenant (null:
-- any).
select * from forge_dead_letters where dlq_id = $1 and ($2::bigint is null or tenant_id = $2);
