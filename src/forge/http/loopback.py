"""Whether a caller sits at the server's own machine."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

# Who passes a request on for somebody else says so in one of these.
PASSED_ON = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


def is_local(connection: HTTPConnection) -> bool:
    """Whether a request was sent from this machine, and not by a page of another name there."""
    if any(name in connection.headers for name in PASSED_ON):
        return False
    client = connection.client
    # A name that leads to 127.0.0.1 is somebody else's page in a browser here.
    return (
        client is not None
        and _is_loopback(client.host)
        and _is_loopback(_hostname(connection.headers.get("host", "")))
    )


def is_plain_local_json(connection: HTTPConnection) -> bool:
    """Whether a program on this machine, and no page in a browser, sends JSON.

    A page can send JSON to another origin only with an Origin, which a program leaves out.
    """
    headers = connection.headers
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    from_browser = any(name in headers for name in ("origin", "sec-fetch-site"))
    return media_type == "application/json" and not from_browser and is_local(connection)


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
