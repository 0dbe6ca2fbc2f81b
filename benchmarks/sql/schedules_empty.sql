truncate forge_schedules, forge_workers;
