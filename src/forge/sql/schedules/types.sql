-- The types of the existing schedules, with how many of each are enabled.
select type, worker_capability, count(*) filter (where enabled) as enabled, count(*) as schedules
from forge_schedules
group by type, worker_capability
order by type, worker_capability;
