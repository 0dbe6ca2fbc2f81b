"""Where a request comes from: loopback, a local program, or a page of an allowed origin."""

from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

# Proxies set one of these headers when they forward a request.
FORWARDING_HEADERS = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def is_local(connection: HTTPConnection) -> bool:
    """Whether a request was sent from this machine, under a loopback name."""
    if any(name in connection.headers for name in FORWARDING_HEADERS):
        return False
    client = connection.client
    # DNS rebinding: a foreign name that resolves to 127.0.0.1 is a page of another site.
    return (
        client is not None
        and _is_loopback(client.host)
        and _is_loopback(_hostname(connection.headers.get("host", "")))
    )


def is_plain_local_json(connection: HTTPConnection) -> bool:
    """Whether a program on this machine, rather than a page in a browser, sends JSON.

    Browsers add an Origin to cross-origin JSON requests; programs do not.
    """
    headers = connection.headers
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    from_browser = any(name in headers for name in ("origin", "sec-fetch-site"))
    return media_type == "application/json" and not from_browser and is_local(connection)


def is_own_page(headers: Headers, allowed: Sequence[str]) -> bool:
    """Whether a request was sent by a page of the server's or an allowed origin, or by no page."""
    site = headers.get("sec-fetch-site", "same-origin")
    return is_origin_allowed(headers, allowed) and (
        # `none`: a person entered the address.
        site in ("same-origin", "none") or headers.get("origin") in allowed
    )


def is_origin_allowed(headers: Headers, allowed: Sequence[str]) -> bool:
    """Whether a page of this origin may open a socket; clients without an Origin may."""
    origins = headers.getlist("origin")
    if not origins:
        return True
    (origin, *more) = origins
    return not more and (origin in allowed or _is_same_host(origin, headers.get("host", "")))


def _is_same_host(origin: str, host: str) -> bool:
    """Whether a page was loaded from the host that it calls.

    The scheme may differ: behind a proxy that terminates TLS the server receives plain http.
    """
    try:
        page = urlsplit(origin)
        called = urlsplit(f"//{host}")
        is_plain = page.path == page.query == page.fragment == "" and page.username is None
        default = _DEFAULT_PORTS[page.scheme]
        same_port = (page.port or default) == (called.port or default)
    except (ValueError, KeyError):
        return False
    return is_plain and bool(page.hostname) and page.hostname == called.hostname and same_port


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
