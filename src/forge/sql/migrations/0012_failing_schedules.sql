-- The schedules whose last run failed, for the overview and its findings.

-- serves schedules/count_failing
create index forge_schedules_failing on forge_schedules (consecutive_failures desc)
    where enabled and consecutive_failures > 0;
