-- How jobs stand: their lease and status, to tell an ack that was carried out before its answer
-- got lost from one that came too late.
select id, lease, status from forge_jobs where id = any ($1::uuid[]);
