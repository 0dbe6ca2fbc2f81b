-- Delete statistics of tenants past their retention. $1 seconds to keep them, $2 how many rows at most.
delete from forge_tenant_statistics
where ctid = any (array(select ctid from forge_tenant_statistics
                        where minute < now() - make_interval(secs => $1) order by minute limit $2))
returning minute as id;
