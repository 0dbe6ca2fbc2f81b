"""WebSub: subscribe at hubs that push new entries, and renew the subscriptions."""

import os
from typing import Any

import httpx

LEASE_SECONDS = 10 * 24 * 3600
# Feeds with subscribers whose hub subscription is missing or expires within a day.
# Each feed has its own secret, so that one hub cannot sign pushes for another.
EXPIRING = """
    update feeds
    set websub_secret = coalesce(websub_secret, gen_random_uuid()::text || gen_random_uuid())
    where hub_url is not null
      and (websub_expires_at is null or websub_expires_at < now() + interval '24 hours')
      and exists (select 1 from subscriptions
                  where feed_id = feeds.id and unsubscribed_at is null)
    returning id, hub_url, topic_url, websub_secret
"""


async def renew(db: Any, http: httpx.AsyncClient) -> tuple[int, list[str]]:
    """Request a renewal at each hub. Return the number of accepted requests, and the errors.

    A hub confirms the subscription later, at the callback in web.py.
    """
    refused = []
    due = await db.fetch(EXPIRING)
    for feed in due:
        try:
            answer = await http.post(feed["hub_url"], data=_subscription_request(feed), timeout=20)
            answer.raise_for_status()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            refused.append(f"{feed['hub_url']}: {error}")
    return len(due) - len(refused), refused


def _subscription_request(feed: Any) -> dict[str, str]:
    return {
        "hub.mode": "subscribe",
        "hub.topic": feed["topic_url"],
        "hub.callback": f"{os.environ['FEEDS_PUBLIC_URL']}/websub/{feed['id']}",
        "hub.lease_seconds": str(LEASE_SECONDS),
        "hub.secret": feed["websub_secret"],
    }
