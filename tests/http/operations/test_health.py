"""Liveness and readiness."""

import httpx

from forge import Forge
from tests.http.conftest import MakeServerApp, Serve


async def test_livez(http: httpx.AsyncClient) -> None:
    answer = await http.get("/livez")

    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


async def test_readyz(http: httpx.AsyncClient) -> None:
    answer = await http.get("/readyz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


async def test_readyz_over_tcp(app: Forge, make_server_app: MakeServerApp, serve: Serve) -> None:
    address = await serve(make_server_app(app))

    async with httpx.AsyncClient(base_url=address) as client:
        assert (await client.get("/readyz")).status_code == 200


async def test_head_request_returns_headers_only(http: httpx.AsyncClient) -> None:
    for address in ("/livez", "/readyz"):
        assert (await http.head(address)).status_code == 200
