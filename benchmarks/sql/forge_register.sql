-- A worker to claim for.
insert into forge_workers (id, incarnation, hostname, pid, version, max_concurrent)
values ($1, $1, 'benchmark', 0, '0', 10)
on conflict (id) do nothing;
