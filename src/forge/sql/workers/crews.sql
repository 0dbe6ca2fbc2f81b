-- The crews: workers that live, are not about to end, and have the same capabilities and queues.
-- $1 seconds of silence after which a worker is dead.
select capabilities, queues, count(*) as workers, sum(running)::bigint as running,
       sum(max_concurrent)::bigint as slots
from forge_workers
where last_heartbeat >= now() - make_interval(secs => $1) and not draining
group by capabilities, queues
order by capabilities, queues;
