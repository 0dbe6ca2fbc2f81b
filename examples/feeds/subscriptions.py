"""Subscribe and unsubscribe: change the subscription and the feed's schedule together.

Both are mutations: one transaction, from Python or over HTTP. Both lock the subscription first,
then the schedule, then the feed. A different order could cause deadlocks.
"""

from datetime import datetime
from typing import Any

from examples.feeds.app import app, fetch_feed
from pydantic import BaseModel

from forge import MutationContext, Rejected

NEW_FEED = "insert into feeds (url) values ($1) on conflict do nothing returning id"
KNOWN_FEED = "select id from feeds where url = $1"
SUBSCRIBE = """
    insert into subscriptions (user_id, feed_id) values ($1, $2)
    on conflict (user_id, feed_id) do update set unsubscribed_at = null
"""
UNSUBSCRIBE = """
    update subscriptions set unsubscribed_at = now()
    where user_id = $1 and feed_id = $2 and unsubscribed_at is null
    returning true
"""
HAS_SUBSCRIBERS = """
    select exists (select 1 from subscriptions where feed_id = $1 and unsubscribed_at is null)
"""


class Following(BaseModel):
    """The state of a feed after a user subscribed or unsubscribed."""

    feed_id: int
    is_fetched: bool
    next_fetch_at: datetime | None


@app.mutation
async def subscribe(ctx: MutationContext, user_id: int, url: str) -> Following:
    """Subscribe a user. The first subscriber starts the fetching."""
    if not url.startswith(("http://", "https://")):
        raise Rejected("The address of a feed must begin with http:// or https://.", status=422)
    feed_id = await _feed(ctx.db, url)
    await ctx.db.execute(SUBSCRIBE, user_id, feed_id)
    schedule = await app.schedules.ensure(
        fetch_feed, str(feed_id), {"feed_id": feed_id}, conn=ctx.db
    )
    return Following(feed_id=feed_id, is_fetched=True, next_fetch_at=schedule.next_run_at)


@app.mutation
async def unsubscribe(ctx: MutationContext, user_id: int, url: str) -> Following:
    """End a subscription. When the last one ends, fetching stops."""
    feed_id = await ctx.db.fetchval(KNOWN_FEED, url)
    if feed_id is None or not await ctx.db.fetchval(UNSUBSCRIBE, user_id, feed_id):
        raise Rejected("Subscription not found.", status=404)
    schedule = await app.schedules.sync_enabled(
        fetch_feed, str(feed_id), HAS_SUBSCRIBERS, feed_id, conn=ctx.db
    )
    next_fetch_at = schedule.next_run_at if schedule.enabled else None
    return Following(feed_id=feed_id, is_fetched=schedule.enabled, next_fetch_at=next_fetch_at)


async def _feed(conn: Any, url: str) -> int:
    """Return the id of a feed. Insert it if it is new, without locking an existing row."""
    known = await conn.fetchval(NEW_FEED, url) or await conn.fetchval(KNOWN_FEED, url)
    return int(known)
