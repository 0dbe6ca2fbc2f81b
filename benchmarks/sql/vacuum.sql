-- Visibility map, hint bits and statistics are paid for before the clock starts.
VACUUM (ANALYZE) limit_jobs;
