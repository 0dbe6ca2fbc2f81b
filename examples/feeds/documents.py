"""RSS and Atom documents, with the headers for conditional requests."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import sha256
from typing import Literal
from xml.sax.saxutils import escape

from starlette.responses import Response

FIRST_DATE = datetime(2026, 1, 1, tzinfo=UTC)


class Document:
    """A growing feed. RSS documents use an ETag, Atom documents use Last-Modified."""

    def __init__(
        self, kind: Literal["rss", "atom"], title: str, *, hub: str | None = None,
        ttl: int | None = None, max_age: int | None = None,
    ) -> None:  # fmt: skip
        self.kind = kind
        self.title = title
        self.hub = hub
        self.ttl = ttl
        self.max_age = max_age
        self.entries: list[str] = []

    @property
    def changed_at(self) -> datetime:
        """Advance one minute per entry, because HTTP dates have a resolution of one second."""
        return FIRST_DATE + len(self.entries) * timedelta(minutes=1)

    def add(self, title: str) -> None:
        self.entries.append(title)

    def answer(self, url: str, headers_sent: Mapping[str, str]) -> Response:
        """Return the document, or 304 if the client has the current version."""
        body = self.written(url)
        if self.kind == "rss":
            headers = {"ETag": f'"{sha256(body.encode()).hexdigest()[:16]}"'}
            is_known = headers_sent.get("if-none-match") == headers["ETag"]
        else:
            headers = {"Last-Modified": format_datetime(self.changed_at, usegmt=True)}
            is_known = headers_sent.get("if-modified-since") == headers["Last-Modified"]
        if self.max_age is not None:
            headers["Cache-Control"] = f"public, max-age={self.max_age}"
        if is_known:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=f"application/{self.kind}+xml")

    def written(self, url: str) -> str:
        return self._rss(url) if self.kind == "rss" else self._atom(url)

    def _rss(self, url: str) -> str:
        items = "".join(
            f"<item><guid>{url}#{n}</guid><title>{escape(title)}</title><link>{url}#{n}</link></item>"
            for n, title in enumerate(self.entries)
        )
        ttl = "" if self.ttl is None else f"<ttl>{self.ttl}</ttl>"
        return (
            f'<?xml version="1.0"?><rss version="2.0"><channel><title>{escape(self.title)}</title>'
            f"<link>{url}</link><description>news</description>{ttl}{items}</channel></rss>"
        )

    def _atom(self, url: str) -> str:
        items = "".join(
            f"<entry><id>{url}#{n}</id><title>{escape(title)}</title>"
            f'<link href="{url}#{n}"/><updated>{FIRST_DATE.isoformat()}</updated></entry>'
            for n, title in enumerate(self.entries)
        )
        hub = "" if self.hub is None else f'<link rel="hub" href="{self.hub}"/>'
        return (
            f'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><id>{url}</id>'
            f"<title>{escape(self.title)}</title><updated>{self.changed_at.isoformat()}</updated>"
            f'<link rel="self" href="{url}"/>{hub}{items}</feed>'
        )
