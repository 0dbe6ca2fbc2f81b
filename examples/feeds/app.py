"""The feeds application: each feed has one schedule, and WebSub renewals have one for all."""

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
    """Fetch a feed, keep what is new, and decide when to come again.

    A feed that fails is no failure of the run: it is counted with the feed, and comes later. An
    error that is not foreseen here fails the run; schema.sql has it counted with the feed, too.
    """
    row = await ctx.db.fetchrow("select * from feeds where id = $1", feed.feed_id)
    if row is None:
        raise NonRetryable(f"there is no feed {feed.feed_id}; disable its schedule")
    pace = Pace.from_environment()
    try:
        found = await fetch(ctx.http, Known(row["url"], row["etag"], row["last_modified"]))
    except FetchFailed as failed:
        failures = row["consecutive_failures"] + 1
        wait = pace.after_failure(failures, failed.retry_after)
        ctx.progress(100, f"{failed}; failure {failures} in a row, again in {_span(wait)}")
        async with bookkeeping.ending(ctx, wait) as conn:
            await bookkeeping.keep_failure(conn, feed.feed_id, failed)
        return
    wait = pace.after_success(found.hints)
    async with bookkeeping.ending(ctx, wait) as conn:
        kept = await bookkeeping.keep(conn, feed.feed_id, found)
        ctx.progress(100, f"{found.status}, {kept.new_entries} new, again in {_span(wait)}")
        if kept.has_new_hub:
            await app.schedules.run_now("renew_websub", conn=conn)


@app.cron("0 4 * * *", type="renew_websub", timeout="10m")
async def renew_websub(ctx: ScheduleContext) -> None:
    """Once a day, ask hubs to go on pushing where their promise ends within a day."""
    renewed, refused = await websub.renew(ctx.db, ctx.http)
    ctx.progress(100, f"{renewed} renewed, {len(refused)} refused")
    if refused:
        # Counted on the schedule itself, which tries again in a minute, in two, in four …
        raise Retryable(f"{len(refused)} of {renewed + len(refused)} refused: {refused[0]}")


def _span(wait: timedelta) -> str:
    return f"{wait.total_seconds():g} s" if wait < timedelta(minutes=2) else str(wait)
