"""What hubs call: they ask whether we meant it, and bring what is new."""

import hmac
from typing import Any

from examples.feeds.app import app, fetch_feed
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.responses import PlainTextResponse

from forge import InvalidValue
from forge.store.database import Database

MOST_BYTES = 1024**2
# Only what we asked for is confirmed: this feed, this topic.
CONFIRMED = """
    update feeds set websub_expires_at = now() + make_interval(secs => $3)
    where id = $1 and topic_url = $2 and websub_secret is not null
    returning true
"""

web = FastAPI(title="Feeds")


@web.get("/websub/{feed_id}")
async def verify(
    feed_id: int,
    mode: str = Query(alias="hub.mode"),
    topic: str = Query(alias="hub.topic"),
    challenge: str = Query("", alias="hub.challenge"),
    lease_seconds: float = Query(0, alias="hub.lease_seconds", ge=0, le=10**8),
) -> PlainTextResponse:
    """Say to a hub that we do want what it offers to push."""
    is_ours = mode == "subscribe" and await _fetchval(CONFIRMED, feed_id, topic, lease_seconds)
    if not is_ours:
        raise HTTPException(404, "nobody here asked for that")
    return PlainTextResponse(challenge)


@web.post("/websub/{feed_id}", status_code=202)
async def receive(feed_id: int, request: Request) -> None:
    """Take a push for a hint to fetch at once: the fetch keeps what is new, and only once."""
    secret = await _fetchval("select websub_secret from feeds where id = $1", feed_id)
    if secret is None:
        raise HTTPException(404, "nobody here asked for that")
    body = await _body(request)
    if body is None or not _is_signed(body, secret, request.headers.get("x-hub-signature", "")):
        return  # by the standard: taken, and ignored
    try:
        await app.schedules.run_now(fetch_feed, str(feed_id))
    except InvalidValue:
        raise HTTPException(410, "nobody reads this any more") from None


async def _body(request: Request) -> bytes | None:
    """Read a push, but no more of it than any that we would believe."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            return None
    return bytes(body)


def _is_signed(body: bytes, secret: str, signature: str) -> bool:
    expected = f"sha256={hmac.new(secret.encode(), body, 'sha256').hexdigest()}"
    # As bytes: texts are compared only where they are ASCII, which strangers need not send.
    return hmac.compare_digest(expected.encode(), signature.encode())


async def _fetchval(query: str, *args: Any) -> Any:
    database: Database = await (await app.session()).database()
    return await (await database.users()).fetchval(query, *args)
