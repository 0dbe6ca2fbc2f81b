-- Must be 0 after a drain, or what was measured was not a drain.
SELECT count(*) FROM limit_jobs WHERE status <> 'completed';
