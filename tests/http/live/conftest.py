"""A server on a real port, and a job that changes while it is followed."""

import secrets
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import pytest

from forge import Forge, JobContext, JobHandle
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.live_client import Client, client

LONG = 300_000
PassTime = Callable[[float], None]


@pytest.fixture
def api(app: Forge, make_server_app: MakeServerApp) -> Any:
    return make_server_app(app)


@pytest.fixture
async def address(api: Any, serve: Serve) -> str:
    return await serve(api)


@pytest.fixture
async def job_id(psql: Any) -> UUID:
    """A job of tenant 7 that waits."""
    made: UUID = await psql.fetchval(
        "insert into forge_jobs (job_type, tenant_id) values ('x', 7) returning id"
    )
    return made


@pytest.fixture
async def handle(app: Forge) -> JobHandle:
    """A job of tenant 7 that waits."""

    @app.job
    async def export(ctx: JobContext, input: dict[str, Any]) -> dict[str, Any]:
        ctx.progress(40, "almost")
        return input

    return await export.dispatch({"known": "plans"}, tenant_id=7, tags=["a"])


@pytest.fixture
async def quick(address: str, token: MakeToken) -> AsyncIterator[Client]:
    """A client that reads all it is sent."""
    async with client(address, token("user")) as live:
        yield live


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> PassTime:
    """Advance the clock by `seconds`."""
    right = time.time

    def let_pass(seconds: float) -> None:
        monkeypatch.setattr(time, "time", lambda: right() + seconds)

    return let_pass


async def change(psql: Any, job_id: UUID, percent: int) -> None:
    """Change a job's progress, with a message too long for a slow reader's buffers."""
    # Random, for sockets compress what they send.
    await psql.execute(
        "update forge_jobs set progress_percent = $2, progress_message = $3 where id = $1",
        job_id,
        percent,
        secrets.token_urlsafe(LONG),
    )
    await psql.execute("select pg_notify('forge_changes', $1)", job_id.hex)


def assert_error(message: dict[str, Any], code: str, job_id: Any = None) -> None:
    """Assert that a message is an error with this code and job."""
    assert (message["type"], message["code"]) == ("error", code), message
    assert message["message"]
    if job_id is not None:
        assert message["job_id"] == str(job_id)
