"""Calls the HTTP API as the holder of a token: in this process, or at a server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from forge.cli.mcp_server.tool import ApiRequest
from forge.core.errors import ConfigError, ForgeError

if TYPE_CHECKING:
    from forge.app import Forge

# Any name: it is never resolved.
IN_PROCESS = "http://forge.internal"
TIMEOUT = 60.0
NO_CONTENT = 204


class RequestRefused(ForgeError):
    """The API answered a request with an error, or did not answer it."""


class Holder(NamedTuple):
    """The holder of the token, as `GET /_api/me` describes it."""

    name: str
    roles: list[str]
    tenant_id: int | None
    read_only: bool
    allowed: list[str]


class Api:
    """The HTTP API, called with one token."""

    def __init__(self, client: httpx.AsyncClient, place: str) -> None:
        self._client = client
        self._place = place

    async def holder(self) -> Holder:
        """Return who the token belongs to, and the routes that it may call."""
        found = await self.send(ApiRequest("GET", "/_api/me", {}, None))
        return Holder(**{name: found[name] for name in Holder._fields})

    async def send(self, request: ApiRequest) -> Any:
        """Return the answer to a request, or raise RequestRefused with what to do."""
        try:
            answer = await self._client.request(
                request.method, request.path, params=dict(request.query), json=request.body
            )
        except httpx.HTTPError as error:
            raise RequestRefused(
                f"cannot reach {self._place} ({type(error).__name__}: {error}); check that the "
                "server runs, and try again"
            ) from error
        if answer.status_code == NO_CONTENT:
            return {"message": "done"}
        body = _json_of(answer)
        if answer.is_success and body is not None:
            return body
        raise RequestRefused(_explanation(answer, body, self._place))


@asynccontextmanager
async def api_of(app: "Forge", token: str) -> AsyncIterator[Api]:
    """Call the API of an app in this process, exactly as `forge server` would serve it."""
    from forge.http import create_app

    app.database_url = app.config.server.database_url or app.database_url
    transport = httpx.ASGITransport(create_app(app), raise_app_exceptions=False)
    async with _client(IN_PROCESS, token, transport) as client:
        yield Api(client, "the API")


@asynccontextmanager
async def api_at(url: str, token: str) -> AsyncIterator[Api]:
    """Call the API of a server."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"--url {url!r} is not the address of a server; write it as https://jobs.example.com"
        )
    async with _client(url.rstrip("/"), token) as client:
        yield Api(client, url)


def _client(
    url: str, token: str, transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    headers = {
        "Authorization": f"Bearer {token}",
        "User-Agent": f"forge-mcp/{version('forge-jobs')}",
    }
    return httpx.AsyncClient(base_url=url, headers=headers, transport=transport, timeout=TIMEOUT)


def _json_of(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _explanation(answer: httpx.Response, body: Any, place: str) -> str:
    if not isinstance(body, dict) or "detail" not in body:
        return (
            f"{place} answered {answer.status_code} without an explanation; check that it is the "
            "address of a Forge server"
        )
    wait = answer.headers.get("retry-after")
    after = f" (not before {wait} s have passed)" if wait else ""
    return f"{body.get('code', answer.status_code)}: {body['detail']}{after}"
