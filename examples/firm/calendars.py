"""Fetch calendars from a provider page by page."""

from datetime import datetime
from typing import Any

import httpx
from examples.firm.connections import Connection
from pydantic import BaseModel

from forge import NonRetryable, RateLimited

KEEP = """
    insert into appointments (connection_id, external_event_id, tenant_id, title, starts_at)
    select $1, id, $2, title, starts_at
    from unnest($3::text[], $4::text[], $5::timestamptz[]) as event (id, title, starts_at)
    on conflict (connection_id, external_event_id)
    do update set title = excluded.title, starts_at = excluded.starts_at
"""


class Appointment(BaseModel):
    """A calendar entry."""

    id: str
    title: str
    starts_at: datetime


class Page(BaseModel):
    """A page of entries, and the number of the next page."""

    events: list[Appointment]
    next_page: int | None = None


async def pull(http: httpx.AsyncClient, connection: Connection, page: int) -> Page:
    """Fetch one page."""
    answer = await http.get(
        f"{connection.url}/events", params={"page": page}, headers=connection.headers
    )
    match answer.status_code:
        case 401 | 403:
            raise NonRetryable(f"Connection {connection.id} was revoked. Reconnect the calendar.")
        case 429:
            # Forge does this for ctx.http automatically. Some providers use a custom body instead.
            seconds = answer.headers.get("Retry-After", "")
            wait = f"{seconds}s" if seconds.isdecimal() and int(seconds) else None
            raise RateLimited(
                f"Page {page}: the calendar provider limits our requests.", retry_after=wait
            )
    answer.raise_for_status()
    return Page.model_validate_json(answer.content)


async def keep(db: Any, connection: Connection, tenant_id: int | None, page: Page) -> None:
    """Store the entries of a page. Idempotent."""
    columns = zip(*((event.id, event.title, event.starts_at) for event in page.events), strict=True)
    if page.events:
        await db.execute(KEEP, connection.id, tenant_id, *map(list, columns))
