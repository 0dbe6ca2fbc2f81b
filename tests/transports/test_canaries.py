"""Canaries where word of jobs goes through SQS: who hears nothing of it does not consume."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from forge import Forge
from forge.http.operations import canaries
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.http.conftest import MakeServerApp, MakeToken, api_url, make_server_app, token
from tests.transports.conftest import transport
from tests.transports.hostile import Hostile

__all__ = ["api_url", "make_server_app", "token"]


@pytest.fixture
def app(make_app: MakeApp, hostile: Hostile, queue: str) -> Forge:
    return make_app(transport=transport(hostile.url, queue))


@pytest.fixture
async def http(
    app: Forge, make_server_app: MakeServerApp, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setattr(canaries, "REUSE_FOR", 0.0)
    monkeypatch.setattr(canaries, "CANARY_TIMEOUT", 0.5)
    transport = httpx.ASGITransport(make_server_app(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://forge.test") as client:
        yield client


async def test_a_crew_is_ready_while_it_hears_from_sqs_and_only_then(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work, hostile: Hostile
) -> None:
    async def states() -> Any:
        answer = await http.get("/readyz?deep=1", headers=token("staff"))
        return answer.status_code, [crew["state"] for crew in answer.json().get("crews", ())]

    async def is_ready() -> bool:
        return await states() == (200, ["consumes"])

    worker = await work(app)
    await until(is_ready, 20, "its canary is consumed")

    hostile.faults.is_down = True
    await until(lambda: not worker.transport.receiver.hears(), 20, "the outage is felt")
    assert await states() == (503, [])

    hostile.faults.is_down = False
    await until(is_ready, 20, "its canary is consumed again")
