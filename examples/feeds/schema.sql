-- The application's tables. Each feed has one schedule of type fetch_feed; its key is the feed's id.

create table if not exists feeds (
    id bigint generated always as identity primary key,
    url text not null unique,
    title text,

    -- copy of the schedule's next_run_at for display: null while the feed has no subscribers
    next_fetch_at timestamptz,

    -- validators for conditional requests
    etag text,
    last_modified text,

    last_fetched_at timestamptz,
    last_status integer,
    last_error text,
    consecutive_failures integer not null default 0,

    -- the hub that pushes new entries, and when the subscription there expires
    hub_url text,
    topic_url text,
    websub_secret text,
    websub_expires_at timestamptz
);

create table if not exists subscriptions (
    user_id bigint not null,
    feed_id bigint not null references feeds,
    subscribed_at timestamptz not null default now(),
    unsubscribed_at timestamptz,
    primary key (user_id, feed_id)
);

-- serves unsubscribe and renew_websub, which check whether a feed has subscribers
create index if not exists subscriptions_active on subscriptions (feed_id)
    where unsubscribed_at is null;

create table if not exists entries (
    feed_id bigint not null references feeds,
    guid text not null,
    title text not null,
    link text,
    published_at timestamptz,
    fetched_at timestamptz not null default now(),
    primary key (feed_id, guid)
);

-- Copies changes of the schedule to its feed, whatever the cause: a fetch, an unexpected error, a
-- timeout, a rescue, a new or ended subscription, `forge schedules`.
create or replace function feeds_follow_schedule() returns trigger language plpgsql as $$
begin
    update feeds
    set next_fetch_at = case when new.enabled then new.next_run_at end
    where id = (new.payload ->> 'feed_id')::bigint
      and next_fetch_at is distinct from case when new.enabled then new.next_run_at end;
    if tg_op = 'UPDATE' and new.consecutive_failures > old.consecutive_failures then
        update feeds
        set consecutive_failures = consecutive_failures + 1, last_error = left(new.last_error, 500)
        where id = (new.payload ->> 'feed_id')::bigint;
    end if;
    return null;
end
$$;

drop trigger if exists feeds_follow_schedule on forge_schedules;
create trigger feeds_follow_schedule
    after insert or update of enabled, next_run_at, consecutive_failures on forge_schedules
    for each row when (new.type = 'fetch_feed')
    execute function feeds_follow_schedule();
