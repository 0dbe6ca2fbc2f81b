"""An unavailable database gives a 503 with Retry-After, and the server recovers by itself."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from forge import Forge
from forge.http.operations import canaries
from tests.apps import Work
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Mode, Proxy
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.worker.claiming import stop_claiming


@pytest.fixture
async def network(api_url: str) -> AsyncIterator[Proxy]:
    async with await Proxy.open(api_url) as proxy:
        yield proxy


@pytest.fixture
async def client(
    app: Forge, make_server_app: MakeServerApp, network: Proxy, serve: Serve, token: MakeToken
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server whose database connection can be cut."""
    api = make_server_app(app)
    api.state.forge.database_url = network.url()
    address = await serve(api)
    async with httpx.AsyncClient(base_url=address, headers=token("user"), timeout=30) as client:
        yield client


def is_unavailable(answer: httpx.Response) -> bool:
    return (
        answer.status_code == 503
        and answer.json()["code"] == "unavailable"
        and int(answer.headers["retry-after"]) >= 1
    )


@pytest.mark.parametrize("address", ["/readyz", f"/_api/jobs/{'0' * 32}"])
async def test_a_database_that_goes_away_and_comes_back(
    client: httpx.AsyncClient, network: Proxy, address: str
) -> None:
    found = (await client.get(address)).status_code
    assert found in (200, 404)

    network.mode = Mode.RESET

    for _ in range(3):
        assert is_unavailable(await client.get(address))
        assert (await client.get("/livez")).status_code == 200
    network.mode = Mode.PASS

    async def is_back() -> bool:
        return (await client.get(address)).status_code == found

    await until(is_back, 30, "the server serves again")


async def test_a_server_that_starts_before_its_database(
    client: httpx.AsyncClient, network: Proxy
) -> None:
    network.mode = Mode.RESET
    assert is_unavailable(await client.get("/readyz"))

    network.mode = Mode.PASS

    async def is_ready() -> bool:
        return (await client.get("/readyz")).status_code == 200

    await until(is_ready, 30, "the server is ready")


async def test_silent_database_does_not_delay_health_checks(
    client: httpx.AsyncClient, network: Proxy
) -> None:
    assert (await client.get("/readyz")).status_code == 200

    network.mode = Mode.DROP

    # httpx itself would give up after 30 s: the answer comes while the database is silent.
    assert is_unavailable(await client.get("/readyz"))
    assert (await client.get("/livez")).status_code == 200
    network.mode = Mode.RESET


@pytest.mark.parametrize("mode", [Mode.DROP, Mode.RESET])
async def test_deep_readiness_names_the_database_that_went_away_during_the_check(
    app: Forge,
    client: httpx.AsyncClient,
    network: Proxy,
    work: Work,
    psql: Any,
    monkeypatch: pytest.MonkeyPatch,
    mode: Mode,
) -> None:
    monkeypatch.setattr(canaries, "CANARY_TIMEOUT", 0.5)
    worker = await work(app)
    await stop_claiming(worker)
    asked = asyncio.create_task(client.get("/readyz?deep=1"))

    async def has_a_canary() -> bool:
        return bool(await psql.fetchval("select count(*) from forge_jobs") == 1)

    await until(has_a_canary, 10, "the canary is dispatched")

    network.mode = mode

    answer = await asked
    assert is_unavailable(answer)
    assert "the database is unavailable" in answer.json()["detail"]
    assert "worker" not in answer.json()["detail"]
    network.mode = Mode.RESET


async def test_a_database_without_tables_is_not_ready(client: httpx.AsyncClient, psql: Any) -> None:
    await psql.execute("delete from forge_migrations where version = 1")

    answer = await client.get("/readyz")

    assert is_unavailable(answer)
    assert "forge migrate" in answer.json()["detail"]


async def test_a_role_without_rights_is_no_fault_of_the_caller(
    client: httpx.AsyncClient, psql: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await psql.execute("revoke select on forge_jobs from forge_api")

    answer = await client.post(f"/_api/jobs/{'0' * 32}/watch_token")

    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "forge_jobs" not in answer.text
    assert "permission denied" in caplog.text
