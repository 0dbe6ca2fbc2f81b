-- The worker groups: live workers that are neither draining nor drained, grouped by capabilities and queues.
-- $1 seconds without a heartbeat after which a worker is dead.
select capabilities, queues, count(*) as workers, sum(running)::bigint as running,
       sum(max_concurrent)::bigint as slots
from forge_workers
where last_heartbeat >= now() - make_interval(secs => $1) and not draining and drained_at is null
group by capabilities, queues
order by capabilities, queues;
