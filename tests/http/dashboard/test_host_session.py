"""The session of a host application instead of a token: the authenticator receives the request."""

from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.requests import HTTPConnection
from websockets.exceptions import InvalidStatus

from forge import Forge
from forge.http import create_app
from forge.http.auth.access import Identity, Role
from forge.http.auth.authenticator import Authenticator, unauthenticated
from tests.apps import MakeApp
from tests.http.conftest import Serve
from tests.http.live_client import client

COOKIE = {"Cookie": "session=of-ann"}
OWN, FOREIGN, TRUSTED = "http://forge.test", "https://evil.test", "https://shop.test"


class HostSession(Authenticator):
    """Knows its callers by a cookie of the host."""

    async def identify_request(self, connection: HTTPConnection) -> Identity:
        if connection.cookies.get("session") == "of-ann":
            return Identity("ann", frozenset({Role.USER, Role.STAFF, Role.MANAGER}))
        if "authorization" in connection.headers:
            return await super().identify_request(connection)
        raise unauthenticated("sign in to the shop first")


@pytest.fixture
async def host(make_app: MakeApp, api_url: str) -> Forge:
    app = make_app(server={"allowed_origins": [TRUSTED]})
    app.database_url = api_url
    return app


@pytest.fixture
async def http(host: Forge) -> AsyncIterator[httpx.AsyncClient]:
    api = create_app(host, authenticator=HostSession.of(host.config))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url=OWN) as http:
        yield http


async def test_session_of_the_host_needs_no_token(http: httpx.AsyncClient) -> None:
    with_session = await http.get("/_api/me", headers=COOKIE)
    without = await http.get("/_api/me")

    assert with_session.json()["name"] == "ann"
    assert without.status_code == 401
    assert "sign in to the shop first" in without.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 422),
        ({"Sec-Fetch-Site": "same-origin", "Origin": OWN}, 422),
        ({"Sec-Fetch-Site": "none"}, 422),
        ({"Sec-Fetch-Site": "cross-site", "Origin": TRUSTED}, 422),
        ({"Sec-Fetch-Site": "cross-site", "Origin": FOREIGN}, 403),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://blog.forge.test"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": FOREIGN}, 403),
        ({"Origin": "null"}, 403),
    ],
)
async def test_other_sites_cannot_use_the_session(
    http: httpx.AsyncClient, headers: dict[str, str], status: int
) -> None:
    # The body is invalid, so that an accepted caller gets a 422.
    answer = await http.post(
        "/_api/jobs/anything/dispatch", headers=COOKIE | headers, json={"colour": "red"}
    )

    assert answer.status_code == status
    if status == 403:
        assert "page of another site" in answer.text


async def test_socket_opens_with_the_session_and_refuses_other_sites(
    host: Forge, serve: Serve
) -> None:
    address = await serve(create_app(host, authenticator=HostSession.of(host.config)))
    missing = "0192a0a4-0000-7000-8000-000000000000"

    async with client(address, COOKIE) as socket:
        await socket.say("subscribe", job_id=missing)
        answer = await socket.next()
    async with client(address, {"Cookie": "theme=dark"}) as socket:
        await socket.say("subscribe", job_id=missing)
        refused = await socket.next()
    with pytest.raises(InvalidStatus) as foreign:
        async with client(address, COOKIE | {"Origin": FOREIGN}):
            pass

    assert answer["code"] == "not_found"
    assert refused["code"] == "unauthenticated"
    assert foreign.value.response.status_code == 403
