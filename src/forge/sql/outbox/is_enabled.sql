-- Whether jobs that begin to wait get a row in the outbox.
select bool_and(tgenabled <> 'D') as is_enabled
from pg_trigger
where tgrelid = 'forge_jobs'::regclass and tgname in ('forge_jobs_tell', 'forge_jobs_tell_again');
