"""The same app under a prefix: in FastAPI, in Starlette, beside Django, behind a proxy."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from forge import Forge
from tests.django_setup import set_up_django
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.live_client import client as socket
from tests.http.live_client import events
from tests.surface.pages import CHECKOUT, blocks

PAGE = CHECKOUT / "docs" / "howto" / "authentication.md"
Scope = dict[str, Any]
Asgi = Callable[..., Awaitable[None]]


@pytest.fixture
def api(app: Forge, make_server_app: MakeServerApp) -> FastAPI:
    @app.job
    async def nothing(ctx: Any, input: dict[str, Any]) -> None: ...

    return make_server_app(app)


async def test_fastapi(app: Forge, api: FastAPI, serve: Serve, token: MakeToken) -> None:
    host = FastAPI()

    @host.get("/hello")
    async def hello() -> str:
        return "hello"

    host.mount("/internal/forge", api)

    await see_that_both_serve(app, host, serve, token, "/internal/forge")


async def test_starlette(app: Forge, api: FastAPI, serve: Serve, token: MakeToken) -> None:
    async def hello(request: Any) -> PlainTextResponse:
        return PlainTextResponse("hello")

    host = Starlette(routes=[Route("/hello", hello), Mount("/forge", api)])

    await see_that_both_serve(app, host, serve, token, "/forge")


async def test_django(
    app: Forge, api: FastAPI, serve: Serve, token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the `asgi.py` of the page on authentication."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.django_project")
    set_up_django()
    monkeypatch.setitem(sys.modules, "jobs", SimpleNamespace(app=api.state.forge))
    (page,) = [block for block in blocks(PAGE, "python") if block.file == "asgi.py"]
    asgi: dict[str, Any] = {}

    exec(page.code, asgi)

    await see_that_both_serve(app, asgi["application"], serve, token, "/forge")


async def test_proxy_that_strips_the_prefix(
    app: Forge, api: FastAPI, serve: Serve, token: MakeToken
) -> None:
    async def host(scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/hello":
            await PlainTextResponse("hello")(scope, receive, send)
            return
        if scope["type"] != "lifespan":
            scope = {**scope, "path": scope["path"].removeprefix("/outside")}
        await api(scope, receive, send)

    await see_that_both_serve(app, host, serve, token, "/outside")


async def test_a_host_that_closes_the_app_leaves_no_connection(
    app: Forge, api: FastAPI, serve: Serve, psql: Any
) -> None:
    @asynccontextmanager
    async def lifespan(host: FastAPI) -> AsyncIterator[None]:
        yield
        await api.state.forge.close()

    host = FastAPI(lifespan=lifespan)
    host.mount("/forge", api)
    async with lifespan(host):
        transport = httpx.ASGITransport(host)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            assert (await client.get("/forge/readyz")).status_code == 200
        assert await connections_of_the_api(psql) > 0

    assert await connections_of_the_api(psql) == 0


async def test_served_alone_it_closes_by_itself(api: FastAPI, psql: Any) -> None:
    async with api.router.lifespan_context(api):
        transport = httpx.ASGITransport(api)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            assert (await client.get("/readyz")).status_code == 200
        assert await connections_of_the_api(psql) > 0

    assert await connections_of_the_api(psql) == 0


async def see_that_both_serve(
    app: Forge, host: Asgi, serve: Serve, token: MakeToken, prefix: str
) -> None:
    job = await app.dispatch("nothing", {}, tenant_id=7)
    address = await serve(host)  # type: ignore[arg-type]
    async with httpx.AsyncClient(base_url=address, headers=token("user", tenant=7)) as client:
        ready = await client.get(f"{prefix}/readyz")
        renewed = await client.post(f"{prefix}/_api/jobs/{job.id}/watch_token")
        missing = await client.get(f"{prefix}/nowhere")
        hello = await client.get("/hello")
        token_of = renewed.json()["watch_token"]
        async with events(address + prefix, job.id, watch_token=token_of) as stream:
            streamed = await stream.job()
    async with socket(address + prefix, token("user", tenant=7)) as open_socket:
        await open_socket.subscribe(job.id)
        from_socket = await open_socket.job()
    async with socket(address + prefix) as open_socket:
        await open_socket.subscribe(job.id, watch_token=token_of)
        watched = await open_socket.job()

    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})
    assert renewed.status_code == 200, renewed.text
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert (hello.status_code, hello.text.strip('"')) == (200, "hello")
    assert {each["id"] for each in (streamed, from_socket, watched)} == {str(job.id)}


async def connections_of_the_api(psql: Any) -> int:
    count: int = await psql.fetchval(
        "select count(*) from pg_stat_activity "
        "where usename = 'forge_api' and datname = current_database()"
    )
    return count
