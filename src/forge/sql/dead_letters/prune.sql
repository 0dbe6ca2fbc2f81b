-- Delete dead letters whose review was closed long ago. $1 seconds to keep, $2 limit.
delete from forge_dead_letters
where dlq_id in (select dlq_id from forge_dead_letters
                 where status <> 'pending_review' and reviewed_at < now() - make_interval(secs => $1)
                 order by reviewed_at limit $2)
returning dlq_id as id;
