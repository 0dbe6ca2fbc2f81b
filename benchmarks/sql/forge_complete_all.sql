update forge_jobs set status = 'completed', version = version + 1, completed_at = now() where status = 'running';
