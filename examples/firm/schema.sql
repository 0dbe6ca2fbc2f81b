-- The application's tables. Each row has a tenant_id.

create table if not exists connections (
    id bigint generated always as identity primary key,
    tenant_id bigint not null,
    url text not null,
    -- provider tokens are stored only here: payloads contain the connection's id
    token text not null
);

create table if not exists mails (
    connection_id bigint not null references connections,
    external_message_id text not null,
    tenant_id bigint not null,
    sender text not null,
    subject text not null,
    body text not null,
    primary key (connection_id, external_message_id)
);

create table if not exists appointments (
    connection_id bigint not null references connections,
    external_event_id text not null,
    tenant_id bigint not null,
    title text not null,
    starts_at timestamptz not null,
    primary key (connection_id, external_event_id)
);

create table if not exists notices (
    id bigint generated always as identity primary key,
    tenant_id bigint not null,
    text text not null,
    created_at timestamptz not null default now()
);
