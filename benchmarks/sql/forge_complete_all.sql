update forge_jobs set status = 'completed', completed_at = now() where status = 'running';
