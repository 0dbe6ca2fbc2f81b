"""WebSub: hubs that push what is new to us, as long as they are asked to from time to time."""

import os
from typing import Any

import httpx

LEASE_SECONDS = 10 * 24 * 3600
# Feeds that somebody reads, whose hub has promised nothing yet or only for another day.
# Each has a secret of its own: no hub can sign what another one would push.
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
    """Ask each hub to go on; return how many agreed to look into it, and what the others said.

    The promise itself comes later, to the callback: see web.py.
    """
    refused = []
    due = await db.fetch(EXPIRING)
    for feed in due:
        try:
            answer = await http.post(feed["hub_url"], data=_wish(feed), timeout=20)
            answer.raise_for_status()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            refused.append(f"{feed['hub_url']}: {error}")
    return len(due) - len(refused), refused


def _wish(feed: Any) -> dict[str, str]:
    return {
        "hub.mode": "subscribe",
        "hub.topic": feed["topic_url"],
        "hub.callback": f"{os.environ['FEEDS_PUBLIC_URL']}/websub/{feed['id']}",
        "hub.lease_seconds": str(LEASE_SECONDS),
        "hub.secret": feed["websub_secret"],
    }
