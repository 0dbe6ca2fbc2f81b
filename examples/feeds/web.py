"""The WebSub callbacks: verify subscriptions and receive pushes."""

import hmac
from typing import Any

from examples.feeds.app import app, fetch_feed
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.responses import PlainTextResponse

from forge import InvalidValue
from forge.store.connection.database import Database

MAX_BYTES = 1024**2
# Confirm only subscriptions that we requested: this feed, this topic.
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
    """Confirm a subscription to its hub."""
    is_ours = mode == "subscribe" and await _fetchval(CONFIRMED, feed_id, topic, lease_seconds)
    if not is_ours:
        raise HTTPException(404, "Subscription not found.")
    return PlainTextResponse(challenge)


@web.post("/websub/{feed_id}", status_code=202)
async def receive(feed_id: int, request: Request) -> None:
    """Fetch the feed at once after a push. The fetch stores each new entry only once."""
    secret = await _fetchval("select websub_secret from feeds where id = $1", feed_id)
    if secret is None:
        raise HTTPException(404, "Subscription not found.")
    body = await _body(request)
    if body is None or not _is_signed(body, secret, request.headers.get("x-hub-signature", "")):
        return  # the standard says: accept and ignore
    try:
        await app.schedules.run_now(fetch_feed, str(feed_id))
    except InvalidValue:
        raise HTTPException(410, "This feed has no subscribers.") from None


async def _body(request: Request) -> bytes | None:
    """Read a push up to the size limit. Return None if it is larger."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            return None
    return bytes(body)


def _is_signed(body: bytes, secret: str, signature: str) -> bool:
    expected = f"sha256={hmac.new(secret.encode(), body, 'sha256').hexdigest()}"
    # Compare bytes: compare_digest rejects non-ASCII text, which a client may send.
    return hmac.compare_digest(expected.encode(), signature.encode())


async def _fetchval(query: str, *args: Any) -> Any:
    database: Database = await (await app.session()).database()
    return await (await database.users()).fetchval(query, *args)
