"""Store the result of a fetch, in the transaction that completes its run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from examples.feeds.fetching import Fetched, FetchFailed
from examples.feeds.reading import Entry

from forge import ScheduleContext

LOCK = "select from forge_schedules where id = $1 for update"
SUCCEEDED = """
    update feeds
    set etag = $2, last_modified = $3, title = coalesce($4, title), last_status = $5,
        last_fetched_at = now(), last_error = null, consecutive_failures = 0
    where id = $1
"""
FAILED = """
    update feeds
    set last_status = $2, last_error = left($3, 500), last_fetched_at = now(),
        consecutive_failures = consecutive_failures + 1
    where id = $1
"""
# If the hub of a feed changes, renew_websub must subscribe again.
HAS_HUB = """
    update feeds
    set hub_url = $2, topic_url = $3, websub_expires_at = null
    where id = $1 and (hub_url, topic_url) is distinct from ($2, $3)
    returning true
"""
ENTRY = """
    insert into entries (feed_id, guid, title, link, published_at)
    select $1, * from unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[])
    on conflict do nothing
    returning true
"""


class Kept(NamedTuple):
    """What was new in a fetched feed."""

    new_entries: int
    has_new_hub: bool


@asynccontextmanager
async def completing(ctx: ScheduleContext, wait: timedelta) -> AsyncIterator[Any]:
    """Complete the run and set the next one, in one transaction with the writes of the block."""
    at = await ctx.db.fetchval("select now() + $1::interval", wait)
    async with ctx.complete_in_transaction(at) as conn:
        # Lock the schedule before the feed, as unsubscribe does, to avoid a deadlock.
        await conn.execute(LOCK, ctx.job_id)
        yield conn


async def keep(conn: Any, feed_id: int, found: Fetched) -> Kept:
    """Store a response and its new entries."""
    content = found.content
    title = None if content is None else content.title
    await conn.execute(SUCCEEDED, feed_id, found.etag, found.last_modified, title, found.status)
    if content is None:
        return Kept(0, False)
    new = await conn.fetch(ENTRY, feed_id, *_columns(content.entries))
    has_new_hub = await conn.fetchval(HAS_HUB, feed_id, content.hub_url, content.topic_url)
    return Kept(len(new), bool(has_new_hub) and content.hub_url is not None)


async def keep_failure(conn: Any, feed_id: int, failed: FetchFailed) -> None:
    """Record a failure of the feed."""
    await conn.execute(FAILED, feed_id, failed.status, str(failed))


def _columns(entries: list[Entry]) -> tuple[list[Any], ...]:
    return (
        [entry.guid for entry in entries],
        [entry.title for entry in entries],
        [entry.link for entry in entries],
        [entry.published_at for entry in entries],
    )
