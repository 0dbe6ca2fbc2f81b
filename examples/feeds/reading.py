"""Parse RSS and Atom with feedparser and extract the fields that the application needs."""

from calendar import timegm
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from typing import Any

import feedparser  # type: ignore[import-untyped]
import httpx


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a feed, identified by its guid."""

    guid: str
    title: str
    link: str | None
    published_at: datetime | None


@dataclass(frozen=True, slots=True)
class Content:
    """A parsed feed."""

    title: str | None
    ttl_minutes: int | None
    hub_url: str | None
    topic_url: str | None
    entries: list[Entry]


def read(body: bytes, answer: httpx.Response) -> Content:
    """Parse a feed. A slightly broken feed is parsed as far as possible."""
    headers = {"content-type": answer.headers.get("content-type", "application/xml")}
    found: Any = feedparser.parse(BytesIO(body), response_headers=headers)
    if not found.get("version"):
        raise ValueError("neither RSS nor Atom")
    links = {link.get("rel"): link.get("href") for link in found.feed.get("links", ())}
    header_links = {rel: link["url"] for rel, link in answer.links.items()}
    ttl = str(found.feed.get("ttl", ""))
    return Content(
        _text(found.feed.get("title")),
        int(ttl) if ttl.isascii() and ttl.isdigit() and len(ttl) < 7 else None,
        header_links.get("hub") or links.get("hub"),
        header_links.get("self") or links.get("self") or str(answer.url),
        [_entry(entry) for entry in found.entries],
    )


def _entry(entry: Any) -> Entry:
    title, link = _text(entry.get("title")) or "(untitled)", _text(entry.get("link"))
    # Identify entries without an id by their link or title.
    guid = _text(entry.get("id")) or link or sha256(title.encode()).hexdigest()
    moment = entry.get("published_parsed") or entry.get("updated_parsed")
    published = None if moment is None else datetime.fromtimestamp(timegm(moment), UTC)
    return Entry(guid, title, link, published)


def _text(value: Any) -> str | None:
    """Return text without NUL, which PostgreSQL rejects, or None if nothing is left."""
    return str(value).replace("\0", "").strip() or None if value else None
