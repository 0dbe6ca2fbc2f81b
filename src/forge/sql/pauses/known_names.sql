-- The names that a pause can mean: registered types of jobs and schedules, and the queues of job
-- types and workers.
select array(select name from forge_job_types union select name from forge_schedule_types) as types,
       array(select queue from forge_job_types
             union
             select unnest(queues) from forge_workers
             union
             select 'default') as queues;
