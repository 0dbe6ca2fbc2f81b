"""Fetch a feed with one conditional request."""

import asyncio
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
from examples.feeds.pace import Hints
from examples.feeds.reading import Content, read

MAX_BYTES = 5 * 1024**2
SECONDS = 30
ACCEPT = "application/rss+xml, application/atom+xml, application/xml;q=0.9, */*;q=0.1"


@dataclass(frozen=True, slots=True)
class Known:
    """A feed and the validators of its last response, for a conditional request."""

    url: str
    etag: str | None
    last_modified: str | None


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response. `content` is None if the feed has not changed."""

    status: int
    etag: str | None
    last_modified: str | None
    hints: Hints
    content: Content | None


class FetchFailed(Exception):
    """A feed could not be fetched, or the response is not a feed."""

    def __init__(
        self, reason: str, status: int | None = None, retry_after: timedelta | None = None
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.retry_after = retry_after


async def fetch(http: httpx.AsyncClient, known: Known) -> Fetched:
    """Fetch a feed if it has changed since the last time."""
    try:
        async with (
            asyncio.timeout(SECONDS),
            http.stream(
                "GET", known.url, headers=_conditions(known), follow_redirects=True
            ) as answer,
        ):
            body = b"" if answer.status_code == 304 else await _body(answer)
    except TimeoutError:
        raise FetchFailed(f"no response within {SECONDS} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise FetchFailed(f"{type(error).__name__}: {error}") from error
    if answer.status_code == 304:
        return _fetched(answer, known, None)
    if answer.status_code != 200:
        reason = f"{answer.status_code} {answer.reason_phrase}".rstrip()
        raise FetchFailed(reason, answer.status_code, _retry_after(answer))
    try:
        # Parse in a thread: a large feed would block the event loop.
        return _fetched(answer, known, await asyncio.to_thread(read, body, answer))
    except Exception as error:  # any parser error on untrusted bytes is a failure of the feed
        raise FetchFailed(f"cannot be parsed: {error}", answer.status_code) from error


def _conditions(known: Known) -> dict[str, str]:
    headers = {"Accept": ACCEPT, "If-None-Match": known.etag}
    headers["If-Modified-Since"] = known.last_modified
    return {name: value for name, value in headers.items() if value}


async def _body(answer: httpx.Response) -> bytes:
    body = bytearray()
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > MAX_BYTES:
            raise FetchFailed(f"larger than {MAX_BYTES:,} bytes", answer.status_code)
    return bytes(body)


def _fetched(answer: httpx.Response, known: Known, content: Content | None) -> Fetched:
    ttl = None if content is None else content.ttl_minutes
    is_new = content is not None
    return Fetched(
        answer.status_code,
        answer.headers.get("etag") or (None if is_new else known.etag),
        answer.headers.get("last-modified") or (None if is_new else known.last_modified),
        Hints(_max_age(answer), ttl),
        content,
    )


def _max_age(answer: httpx.Response) -> timedelta | None:
    found = re.search(r"max-age=(\d{1,9})\b", answer.headers.get("cache-control", ""))
    return timedelta(seconds=int(found[1])) if found else None


def _retry_after(answer: httpx.Response) -> timedelta | None:
    value: Any = answer.headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}", value):
        return timedelta(seconds=int(value))
    try:
        return max(parsedate_to_datetime(value) - datetime.now(UTC), timedelta(0))
    except (ValueError, TypeError):
        return None
