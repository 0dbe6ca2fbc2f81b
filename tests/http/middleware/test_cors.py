"""Cross-origin requests: pages of allowed origins read every response, other pages none."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Mount

from forge import Forge
from forge.cli.processes.serving import listen, make_server
from forge.http.problems.problem import Problem
from tests.apps import MakeApp
from tests.faults.kit.process import until
from tests.http.conftest import MakeServerApp, MakeToken
from tests.http.job_client import add_jobs
from tests.http.live_client import events, watch_token

ORIGIN = "https://shop.example"
FOREIGN = (
    "https://evil.example",
    "https://shop.example.evil",
    "https://shop.example:8443",
    "http://shop.example",
    "https://SHOP.example",
    "https://shop.example/",
    "https://shop.example, https://evil.example",
    "null",
    "",
    "*",
)
NO_AUTHENTICATOR = "authentication was asked"


@pytest.fixture
def shop(make_app: MakeApp) -> Forge:
    """An app whose server pages of another origin may call."""
    app = make_app(server={"allowed_origins": [ORIGIN], "max_body": "2KB"})
    add_jobs(app)
    return app


@pytest.fixture
def api(shop: Forge, make_server_app: MakeServerApp) -> FastAPI:
    """Its server, with routes that fail in ways that a caller cannot provoke."""
    api = make_server_app(shop)

    @api.get("/fail/{code}")
    async def fail(code: str) -> None:
        if code == "crash":
            raise ZeroDivisionError
        raise Problem(code, "as asked", headers={"Retry-After": "1"})

    return api


@pytest.fixture
async def page(api: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A page of the allowed origin."""
    async with called(api, {"Origin": ORIGIN}) as client:
        yield client


@asynccontextmanager
async def called(api: Any, headers: Mapping[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(api)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://forge.test", headers=headers
    ) as client:
        yield client


def cors(answer: httpx.Response) -> dict[str, str]:
    return {k: v for k, v in answer.headers.items() if k.startswith("access-control-")}


def see_that_it_can_be_read(answer: httpx.Response) -> None:
    assert cors(answer) == {
        "access-control-allow-origin": ORIGIN,
        "access-control-expose-headers": "Retry-After, WWW-Authenticate",
    }
    assert answer.headers.get_list("vary") == ["Origin"]


def see_that_it_cannot_be_read(answer: httpx.Response) -> None:
    assert cors(answer) == {}
    assert answer.headers.get_list("vary") == ["Origin"]


# Requests by the status that they get; of "user" with a token.
REQUESTS: dict[str, tuple[int, str, str, dict[str, Any]]] = {
    "success": (202, "POST", "/_api/jobs/send_mail/dispatch", {"json": {}}),
    "no token": (401, "GET", "/_api/jobs", {"headers": {"Authorization": ""}}),
    "no token on a fast route": (
        401,
        "POST",
        "/_api/jobs/send_mail/dispatch",
        {"headers": {"Authorization": ""}, "json": {}},
    ),
    "a role is missing": (403, "GET", "/_api/workers", {}),
    "unknown path": (404, "GET", "/nowhere", {}),
    "unknown job": (404, "GET", f"/_api/jobs/{uuid4()}/live", {}),
    "unknown type": (404, "POST", "/_api/jobs/nothing/dispatch", {"json": {}}),
    "wrong method": (405, "PUT", "/_api/jobs", {}),
    "large body": (413, "POST", "/_api/jobs/send_mail/dispatch", {"json": {"args": "x" * 3000}}),
    "large body in pieces": (
        413,
        "POST",
        "/_api/jobs/send_mail/dispatch",
        {"content": "pieces", "headers": {"Content-Type": "application/json"}},
    ),
    "not JSON": (415, "POST", "/_api/jobs/send_mail/dispatch", {"data": {"a": "b"}}),
    "malformed JSON": (400, "POST", "/_api/jobs/send_mail/dispatch", {"content": "{"}),
    "invalid body": (422, "POST", "/_api/jobs/export_users/dispatch", {"json": {"args": {}}}),
    "unknown parameter": (422, "GET", "/_api/jobs?stauts=failed", {}),
    "malformed URL": (422, "GET", "/_api/jobs?q=%00", {}),
    "too many": (429, "GET", "/fail/too_many", {}),
    "crash": (500, "GET", "/fail/crash", {}),
    "unavailable": (503, "GET", "/fail/unavailable", {}),
    "public": (200, "GET", "/livez", {}),
    "head of nothing": (404, "HEAD", "/nowhere", {}),
}


async def ask(api: FastAPI, name: str, origin: dict[str, str], token: MakeToken) -> httpx.Response:
    status, method, path, options = REQUESTS[name]
    if options.get("content") == "pieces":
        options = options | {"content": _pieces()}
    headers = origin | token("user") | options.get("headers", {})
    async with called(api, {}) as client:
        answer = await client.request(method, path, **options | {"headers": headers})
    assert answer.status_code == status, answer.text
    return answer


async def _pieces() -> AsyncIterator[bytes]:
    for _ in range(3):
        yield b" " * 1000


@pytest.mark.parametrize("name", REQUESTS)
async def test_every_response_can_be_read_by_an_allowed_page(
    api: FastAPI, name: str, token: MakeToken
) -> None:
    see_that_it_can_be_read(await ask(api, name, {"Origin": ORIGIN}, token))


@pytest.mark.parametrize("name", REQUESTS)
async def test_no_response_can_be_read_by_another_page(
    api: FastAPI, name: str, token: MakeToken
) -> None:
    """And caches know that it differs, also without an Origin."""
    see_that_it_cannot_be_read(await ask(api, name, {"Origin": FOREIGN[0]}, token))
    see_that_it_cannot_be_read(await ask(api, name, {}, token))


@pytest.mark.parametrize("origin", FOREIGN)
async def test_an_origin_must_match_exactly(api: FastAPI, origin: str) -> None:
    async with called(api, {"Origin": origin}) as client:
        see_that_it_cannot_be_read(await client.get("/livez"))


async def test_two_origins_are_none(api: FastAPI) -> None:
    async with called(api, {}) as client:
        answer = await client.get("/livez", headers=[("Origin", ORIGIN), ("Origin", ORIGIN)])

    see_that_it_cannot_be_read(answer)


async def test_without_allowed_origins_responses_do_not_differ(
    app: Forge, make_server_app: MakeServerApp
) -> None:
    async with called(make_server_app(app), {"Origin": ORIGIN}) as client:
        answer = await client.get("/livez")

    assert cors(answer) == {}
    assert "vary" not in answer.headers


async def test_a_stream_can_be_read(api: FastAPI, serving_address: str, shop: Forge) -> None:
    handle = await shop.dispatch("send_mail", {})
    token = watch_token(handle.id)

    async with events(serving_address, handle.id, {"Origin": ORIGIN}, watch_token=token) as stream:
        assert (await stream.job())["id"] == str(handle.id)
        see_that_it_can_be_read(stream.answer)


PREFLIGHT = {
    "Origin": ORIGIN,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}


@pytest.fixture
def unreachable(api: FastAPI) -> FastAPI:
    """The server without a database, and with an authenticator that must not be asked."""

    class Authenticator:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(NO_AUTHENTICATOR)

    api.state.authenticator = Authenticator()
    api.state.forge.database_url = "postgresql://127.0.0.1:1/x"
    return api


@pytest.mark.parametrize(
    "path", ["/_api/jobs/send_mail/dispatch", "/_api/jobs", "/nowhere", "/_api/jobs?q=%00"]
)
async def test_a_preflight_is_answered_without_a_token_or_a_database(
    unreachable: FastAPI, path: str
) -> None:
    async with called(unreachable, PREFLIGHT) as client:
        answer = await client.options(path)

    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["access-control-allow-methods"] == "DELETE, GET, HEAD, PATCH, POST"
    assert answer.headers["access-control-allow-headers"] == (
        "Authorization, Content-Type, Last-Event-ID, Traceparent, Tracestate"
    )
    assert answer.headers["access-control-max-age"] == "7200"
    assert answer.headers.get_list("vary") == ["Origin"]
    # Tokens are sent in a header, never as a cookie of the browser.
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("origin", FOREIGN)
async def test_a_preflight_of_another_page_is_refused_as_any_method_is(
    unreachable: FastAPI, origin: str
) -> None:
    async with called(unreachable, PREFLIGHT | {"Origin": origin}) as client:
        answer = await client.options("/_api/jobs")

    assert answer.status_code == 405
    see_that_it_cannot_be_read(answer)


async def test_other_options_requests_are_no_preflights(page: httpx.AsyncClient) -> None:
    answer = await page.options("/_api/jobs")

    assert answer.status_code == 405
    see_that_it_can_be_read(answer)


async def test_a_changed_setting_applies_at_once(api: FastAPI, page: httpx.AsyncClient) -> None:
    forge = api.state.forge
    see_that_it_can_be_read(await page.get("/livez"))

    other = forge.config.server.model_copy(update={"allowed_origins": ("https://other.example",)})
    forge.config = forge.config.model_copy(update={"server": other})

    see_that_it_cannot_be_read(await page.get("/livez"))
    allowed = await page.get("/livez", headers={"Origin": "https://other.example"})
    assert allowed.headers["access-control-allow-origin"] == "https://other.example"


@pytest.mark.parametrize("framework", [FastAPI, Starlette])
async def test_under_a_prefix(shop: Forge, api: FastAPI, token: MakeToken, framework: Any) -> None:
    host = framework()
    host.router.routes.append(Mount("/background", api))
    path = f"/background/_api/jobs/{(await shop.dispatch('send_mail', {})).id}/live"

    async with called(host, {"Origin": ORIGIN}) as client:
        preflight = await client.options(path, headers=PREFLIGHT)
        read = await client.get(path, headers=token("user"))
        refused = await client.get("/background/_api/jobs")

    assert preflight.status_code == 204
    assert (read.status_code, refused.status_code) == (200, 401)
    see_that_it_can_be_read(read)
    see_that_it_can_be_read(refused)


async def test_in_a_host_with_headers_of_its_own_each_is_sent_once(api: FastAPI) -> None:
    own = Middleware(CORSMiddleware, allow_origins=[ORIGIN], allow_headers=["Authorization"])
    host = Starlette(routes=[Mount("/background", api)], middleware=[own])

    async with called(host, {"Origin": ORIGIN}) as client:
        answer = await client.get("/background/livez")

    assert answer.headers.get_list("access-control-allow-origin") == [ORIGIN]


async def test_a_page_needs_a_token_also_in_development(
    shop: Forge, make_server_app: MakeServerApp
) -> None:
    api = make_server_app(shop)
    api.state.is_development = True

    async with called(api, {"Host": "localhost"}) as client:
        path = "/_api/jobs/send_mail/dispatch"
        assert (await client.post(path, json={})).status_code == 202
        answer = await client.post(path, json={}, headers={"Origin": ORIGIN})

    assert answer.status_code == 401
    see_that_it_can_be_read(answer)


@pytest.fixture
async def serving_address(api: FastAPI) -> AsyncIterator[str]:
    """The address of the server, with the limits of its settings."""
    settings = api.state.forge.config.server.model_copy(
        update={"max_header_bytes": 2048, "body_timeout": timedelta(seconds=0.1)}
    )
    listener = listen("127.0.0.1", 0)
    server = make_server(api, settings=settings)
    server.config.timeout_graceful_shutdown = 2
    running = asyncio.create_task(server.serve([listener]))
    await until(lambda: server.started or running.done(), 30, "the server has started")
    host, port = listener.getsockname()
    yield f"http://{host}:{port}"
    server.should_exit = True
    await asyncio.wait_for(running, 30)


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        ("X-Long: " + "a" * 3000 + "\r\n\r\n", 431),
        ("Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{", 408),
    ],
)
@pytest.mark.parametrize("origin", [ORIGIN, FOREIGN[0]])
async def test_what_the_connection_refuses_can_be_read(
    serving_address: str, token: MakeToken, origin: str, rest: str, status: int
) -> None:
    head = "".join(f"{k}: {v}\r\n" for k, v in ({"Origin": origin} | token("user")).items())
    reader, writer = await asyncio.open_connection(*place(serving_address))
    writer.write(f"POST /_api/jobs/send_mail/dispatch HTTP/1.1\r\nHost: x\r\n{head}{rest}".encode())
    received = (await asyncio.wait_for(reader.read(), 20)).decode()
    writer.close()

    assert received.startswith(f"HTTP/1.1 {status} ")
    lines = received.partition("\r\n\r\n")[0].lower().splitlines()
    assert "vary: origin" in lines
    assert (f"access-control-allow-origin: {ORIGIN}" in lines) is (origin == ORIGIN)


async def test_a_server_without_allowed_origins_adds_nothing_there(
    app: Forge, make_server_app: MakeServerApp, serve: Any
) -> None:
    address = await serve(make_server_app(app))
    reader, writer = await asyncio.open_connection(*place(address))
    writer.write(f"GET / HTTP/1.1\r\nOrigin: {ORIGIN}\r\nX: {'a' * 70_000}\r\n\r\n".encode())
    received = (await asyncio.wait_for(reader.read(), 20)).decode().lower()
    writer.close()

    assert received.startswith("http/1.1 431 ")
    assert "access-control" not in received
    assert "vary" not in received


def place(address: str) -> tuple[str, int]:
    url = httpx.URL(address)
    return url.host, url.port or 0
