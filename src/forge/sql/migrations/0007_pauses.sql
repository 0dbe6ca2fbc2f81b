-- Pauses of job types and queues. Claims compare the lane, not each job, with these few rows.

-- One row per pause of a type, a queue, or a type in a queue.
create table forge_pauses (
    id uuid primary key default forge_uuidv7(),
    -- of jobs or, without a queue, of schedules too; null: every type
    type varchar(255),
    -- null: every queue
    queue varchar(255),
    -- when it ends by itself; null: when it is removed
    until timestamptz,
    reason text not null,
    actor text,
    created_at timestamptz not null default now(),
    constraint forge_pauses_once unique nulls not distinct (type, queue),
    constraint forge_pauses_target check (type is not null or queue is not null),
    -- requests such as forge.cancel are carried out whatever is paused
    constraint forge_pauses_builtin check (not starts_with(type, 'forge.') and queue <> 'forge')
);

-- Only operators pause: a pause affects the jobs of every tenant.
create policy forge_operator on forge_pauses
    using ((select forge_is_operator()))
    with check ((select forge_is_operator()) and forge_may_sign((select forge_caller()), actor));
alter table forge_pauses enable row level security;
