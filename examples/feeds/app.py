"""The feeds application: one schedule per feed, and one schedule for all WebSub renewals."""

from datetime import timedelta

from examples.feeds import bookkeeping, websub
from examples.feeds.fetching import FetchFailed, Known, fetch
from examples.feeds.pace import Pace
from pydantic import BaseModel

from forge import Forge, NonRetryable, Retryable, ScheduleContext

app = Forge()


class Feed(BaseModel):
    """The payload of fetch_feed."""

    feed_id: int


@app.schedule("fetch_feed", timeout="2m")
async def fetch_feed(ctx: ScheduleContext, feed: Feed) -> None:
    """Fetch a feed, store new entries, and decide when to fetch again.

    A feed that fails does not fail the run: the feed counts the failure and is fetched later. An
    unexpected error fails the run; a trigger in schema.sql counts it with the feed, too.
    """
    row = await ctx.db.fetchrow("select * from feeds where id = $1", feed.feed_id)
    if row is None:
        raise NonRetryable(f"Feed {feed.feed_id} does not exist. Disable its schedule.")
    pace = Pace.from_environment()
    try:
        found = await fetch(ctx.http, Known(row["url"], row["etag"], row["last_modified"]))
    except FetchFailed as failed:
        failures = row["consecutive_failures"] + 1
        wait = pace.after_failure(failures, failed.retry_after)
        ctx.progress(100, f"{failed}; failure {failures} in a row, again in {_span(wait)}")
        async with bookkeeping.completing(ctx, wait) as conn:
            await bookkeeping.keep_failure(conn, feed.feed_id, failed)
        return
    wait = pace.after_success(found.hints)
    async with bookkeeping.completing(ctx, wait) as conn:
        kept = await bookkeeping.keep(conn, feed.feed_id, found)
        ctx.progress(100, f"{found.status}, {kept.new_entries} new, again in {_span(wait)}")
        if kept.has_new_hub:
            await app.schedules.run_now("renew_websub", conn=conn)


@app.cron("0 4 * * *", type="renew_websub", timeout="10m")
async def renew_websub(ctx: ScheduleContext) -> None:
    """Once a day, renew the WebSub subscriptions that expire within a day."""
    renewed, refused = await websub.renew(ctx.db, ctx.http)
    ctx.progress(100, f"{renewed} renewed, {len(refused)} refused")
    if refused:
        # Fails the run: the schedule retries after one minute, then two, four …
        raise Retryable(f"{len(refused)} of {renewed + len(refused)} refused: {refused[0]}")


def _span(wait: timedelta) -> str:
    return f"{wait.total_seconds():g} s" if wait < timedelta(minutes=2) else str(wait)
