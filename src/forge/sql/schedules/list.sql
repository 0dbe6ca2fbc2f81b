-- A page of schedules, newest first.
-- $1 type, $2 whether enabled, $3 tenant (null: any), $4 return schedules before this id, $5 limit.
select * from forge_schedules
where ($1::text is null or type = $1)
  and ($2::boolean is null or enabled = $2)
  and ($3::bigint is null or tenant_id = $3)
  and ($4::uuid is null or id < $4)
order by id desc
limit $5;
