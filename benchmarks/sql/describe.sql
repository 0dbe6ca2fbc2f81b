-- What a reader must know of the server to judge the figures.
SELECT name, setting
FROM pg_settings
WHERE name IN ('server_version', 'fsync', 'synchronous_commit', 'shared_buffers', 'max_wal_size')
ORDER BY name;
