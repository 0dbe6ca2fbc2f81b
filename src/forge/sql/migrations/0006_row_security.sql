-- Tenants: who has set forge.tenant_id sees and writes that tenant's rows alone; who has not is an
-- operator. The owner of the tables is not bound by this, and the role forge_worker has a policy of
-- its own that costs it nothing (sql/roles).

-- The tenant that this connection acts for; null for an operator.
create function forge_current_tenant() returns bigint
    language sql stable parallel safe
    return nullif(current_setting('forge.tenant_id', true), '')::bigint;

create policy forge_tenant on forge_jobs
    using (forge_current_tenant() is null or tenant_id = forge_current_tenant());
create policy forge_tenant on forge_idempotency_keys
    using (forge_current_tenant() is null or tenant_id = forge_current_tenant());
create policy forge_tenant on forge_attempts
    using (forge_current_tenant() is null or tenant_id = forge_current_tenant());
create policy forge_tenant on forge_dead_letters
    using (forge_current_tenant() is null or tenant_id = forge_current_tenant());
create policy forge_tenant on forge_audit_events
    using (forge_current_tenant() is null or tenant_id = forge_current_tenant());
create policy forge_tenant on forge_schedules
    using (forge_current_tenant() is null or tenant_id = forge_current_tenant());
-- a message is whose its job is
create policy forge_tenant on forge_outbox
    using (forge_current_tenant() is null or exists (select from forge_jobs as job where job.id = job_id));

alter table forge_jobs enable row level security;
alter table forge_idempotency_keys enable row level security;
alter table forge_attempts enable row level security;
alter table forge_dead_letters enable row level security;
alter table forge_audit_events enable row level security;
alter table forge_schedules enable row level security;
alter table forge_outbox enable row level security;

-- Workers that run by now go on as they did.
do $$
declare
    name text;
begin
    if exists (select from pg_roles where rolname = 'forge_worker') then
        foreach name in array array['forge_jobs', 'forge_idempotency_keys', 'forge_attempts', 'forge_dead_letters',
                                    'forge_audit_events', 'forge_schedules', 'forge_outbox'] loop
            execute format('create policy forge_worker on %I to forge_worker using (true)', name);
        end loop;
    end if;
end
$$;
