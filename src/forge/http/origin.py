"""Which pages may open a socket: browsers do not keep other sites' pages from trying."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers

_PORTS = {"http": 80, "https": 443}


def is_allowed(headers: Headers, allowed: Sequence[str]) -> bool:
    """Whether a page of this origin may; whoever sends none is no browser."""
    origins = headers.getlist("origin")
    if not origins:
        return True
    (origin, *more) = origins
    return not more and (origin in allowed or _is_own(origin, headers.get("host", "")))


def _is_own(origin: str, host: str) -> bool:
    """Whether a page came from the host that it now calls.

    The scheme may differ: behind a proxy that ends TLS the server itself is called by http.
    """
    try:
        page = urlsplit(origin)
        called = urlsplit(f"//{host}")
        is_plain = page.path == page.query == page.fragment == "" and page.username is None
        default = _PORTS[page.scheme]
        same_port = (page.port or default) == (called.port or default)
    except (ValueError, KeyError):
        return False
    return is_plain and bool(page.hostname) and page.hostname == called.hostname and same_port
