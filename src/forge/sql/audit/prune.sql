-- Delete audit events past their retention. $1 seconds to keep, $2 limit.
delete from forge_audit_events
where id in (select id from forge_audit_events
             where created_at < now() - make_interval(secs => $1)
             order by id limit $2)
returning id;
