-- Delete statistics past their retention. $1 seconds to keep them, $2 how many rows at most.
delete from forge_statistics
where ctid = any (array(select ctid from forge_statistics
                        where minute < now() - make_interval(secs => $1) order by minute limit $2))
returning minute as id;
