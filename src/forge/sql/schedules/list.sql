-- A page of schedules, newest first.
-- $1 type, $2 key, $3 whether enabled, $4 tenant (null: any), $5 return schedules before this id, $6
-- limit.
select * from forge_schedules
where ($1::text is null or type = $1)
  and ($2::text is null or key = $2)
  and ($3::boolean is null or enabled = $3)
  and ($4::bigint is null or tenant_id = $4)
  and ($5::uuid is null or id < $5)
order by id desc
limit $6;
