-- Whether jobs that begin to wait get a row in the outbox.
select bool_and(tgenabled <> 'D') as is_enabled
from pg_trigger
where tgrelid = 'forge_jobs'::regclass and tgname in ('forge_jobs_outbox', 'forge_jobs_outbox_again');
