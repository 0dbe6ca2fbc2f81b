"""The live view of one job for clients that poll: who may read it, and what they read."""

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from forge import Forge, JobContext, JobHandle
from tests.apps import Work
from tests.http.conftest import MakeToken
from tests.http.job_client import code, paths
from tests.http.live.conftest import PassTime
from tests.http.live_client import client, events, watch_token
from tests.worker.early_completion import complete_early


@pytest.fixture
async def polling(address: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the server, without a token."""
    async with httpx.AsyncClient(base_url=address) as http:
        yield http


def path(handle: JobHandle) -> str:
    return f"/_api/jobs/{handle.id}/live"


async def test_it_is_the_job_of_the_socket_and_of_the_stream(
    app: Forge,
    work: Work,
    address: str,
    polling: httpx.AsyncClient,
    handle: JobHandle,
    token: MakeToken,
) -> None:
    caller = token("user", tenant=7)
    for _ in range(2):  # as it waits, and when it has ended
        answer = await polling.get(path(handle), headers=caller)
        async with client(address, caller) as live, events(address, handle.id, caller) as stream:
            await live.subscribe(handle.id)
            from_socket, from_stream = await live.job(), await stream.job()

        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.json() == from_socket == from_stream
        await work(app)
        await handle.result(20)

    assert answer.json()["output"] == {"known": "plans"}


async def test_a_watch_token_shows_its_job_and_no_other(
    app: Forge, polling: httpx.AsyncClient, handle: JobHandle
) -> None:
    other = await app.dispatch("export", {})
    token = {"watch_token": watch_token(handle.id)}

    assert (await polling.get(path(handle), params=token)).json()["id"] == str(handle.id)
    assert code(await polling.get(path(other), params=token)) == (401, "unauthenticated")


async def test_an_expired_watch_token_is_refused(
    polling: httpx.AsyncClient, handle: JobHandle, pass_time: PassTime
) -> None:
    token = {"watch_token": watch_token(handle.id, lifetime=60)}
    assert (await polling.get(path(handle), params=token)).status_code == 200

    pass_time(61)

    assert code(await polling.get(path(handle), params=token)) == (401, "unauthenticated")


@pytest.mark.parametrize(
    ("roles", "tenant", "answer"),
    [
        (["user"], 7, 200),
        (["staff"], None, 200),
        (["user"], 8, 404),
        (["manager"], 7, 403),
    ],
)
async def test_a_job_is_shown_to_its_tenant_and_to_operators(
    polling: httpx.AsyncClient,
    handle: JobHandle,
    token: MakeToken,
    roles: list[str],
    tenant: Any,
    answer: int,
) -> None:
    shown = await polling.get(path(handle), headers=token(*roles, tenant=tenant))

    assert shown.status_code == answer
    assert "plans" not in shown.text


async def test_another_tenants_job_looks_like_one_that_does_not_exist(
    polling: httpx.AsyncClient, handle: JobHandle, token: MakeToken, psql: Any
) -> None:
    caller = token("user", tenant=8)
    theirs = await polling.get(path(handle), headers=caller)
    await psql.execute("delete from forge_jobs")
    deleted = await polling.get(path(handle), headers=caller)

    assert code(theirs) == code(deleted) == (404, "not_found")
    assert theirs.json() == deleted.json()


async def test_a_request_without_a_token_is_refused(
    polling: httpx.AsyncClient, handle: JobHandle
) -> None:
    assert code(await polling.get(path(handle))) == (401, "unauthenticated")


async def test_unknown_parameters_and_malformed_ids_are_refused(
    polling: httpx.AsyncClient, handle: JobHandle, token: MakeToken
) -> None:
    caller = token("user")

    assert paths(await polling.get(path(handle), params={"token": "x"}, headers=caller)) == [
        "query.token"
    ]
    assert code(await polling.get("/_api/jobs/17/live", headers=caller)) == (422, "invalid")
    assert code(await polling.get(f"/_api/jobs/{uuid4()}/live", headers=caller))[0] == 404


async def test_a_job_that_awaits_its_output_is_shown_as_running(
    app: Forge, work: Work, polling: httpx.AsyncClient, token: MakeToken
) -> None:
    handle, go_on = await complete_early(app, work)
    before = (await polling.get(path(handle), headers=token("user"))).json()
    go_on.set()
    await handle.result(20)
    after = (await polling.get(path(handle), headers=token("user"))).json()

    assert (before["status"], before["output"], before["completed_at"]) == ("running", None, None)
    assert (after["status"], after["output"]) == ("completed", "receipt")
    assert before["version"] < after["version"]


@pytest.mark.parametrize("output", [None, True, 0, 1.5, "text", [], [1, {"a": None}], {"b": []}])
async def test_any_json_is_an_output(
    app: Forge, work: Work, polling: httpx.AsyncClient, token: MakeToken, output: Any
) -> None:
    @app.job
    async def answer(ctx: JobContext) -> Any:
        return output

    handle = await answer.dispatch()
    await work(app)
    await handle.result(20)
    shown = await polling.get(path(handle), headers=token("user"))

    # As text: true and 1 are equal in Python.
    assert json.dumps(shown.json()["output"]) == json.dumps(output)
