-- What was asked for of a job, the latest first, a page at a time. $1 the id before which to look,
-- $2 how many, $3 event, $4 actor, $5 tenant (null: any), $6 the job.
select id, event, actor, tenant_id, job_id, dlq_id, schedule_id, notes, detail, created_at
from forge_audit_events
where job_id = $6::uuid and ($5::bigint is null or tenant_id = $5)
  and ($3::text is null or event = $3) and ($4::text is null or actor = $4)
  and id < $1::bigint
order by id desc
limit $2;
