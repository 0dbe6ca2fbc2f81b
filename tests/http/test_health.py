"""Load balancers are told whether the server lives, and whether it can serve."""

import httpx

from forge import Forge
from tests.http.conftest import MakeServerApp, Serve


async def test_a_server_that_turns_is_alive(http: httpx.AsyncClient) -> None:
    answer = await http.get("/livez")

    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


async def test_a_server_with_a_database_is_ready(http: httpx.AsyncClient) -> None:
    answer = await http.get("/readyz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


async def test_behind_a_port_it_is_ready_too(
    app: Forge, make_server_app: MakeServerApp, serve: Serve
) -> None:
    address = await serve(make_server_app(app))

    async with httpx.AsyncClient(base_url=address) as client:
        assert (await client.get("/readyz")).status_code == 200


async def test_some_ask_for_the_headers_alone(http: httpx.AsyncClient) -> None:
    for address in ("/livez", "/readyz"):
        assert (await http.head(address)).status_code == 200
