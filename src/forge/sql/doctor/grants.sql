-- What the current role can do with jobs.
select has_table_privilege('forge_jobs', 'select') as may_read,
       has_any_column_privilege('forge_jobs', 'insert') as may_dispatch,
       has_column_privilege('forge_jobs', 'status', 'update') as may_move,
       has_table_privilege('forge_jobs', 'delete') as may_prune,
       has_table_privilege('forge_workers', 'insert, update, delete') as may_work;
