"""The socket: access and updates."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest

from forge import Forge, JobContext, JobHandle
from forge.http.live import view
from tests.apps import Work
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.live.conftest import assert_error
from tests.http.live_client import client, watch_token
from tests.worker.early_completion import complete_early


async def test_socket_sends_the_state_and_each_change(
    app: Forge, work: Work, address: str, handle: JobHandle, token: MakeToken
) -> None:
    async with client(address, token("user", tenant=7)) as live:
        await live.subscribe(handle.id)
        before = await live.job()
        await work(app)
        after = await live.job(lambda job: job["state"] == "completed")

    assert (before["id"], before["status"], before["state"]) == (
        str(handle.id),
        "pending",
        "queued",
    )
    assert after["output"] == {"known": "plans"}
    assert (after["progress_percent"], after["progress_message"]) == (100, "almost")


async def test_every_lasting_status_is_sent(
    app: Forge, work: Work, address: str, token: MakeToken
) -> None:
    steps = [asyncio.Event() for _ in range(5)]

    @app.job
    async def report(ctx: JobContext) -> None:
        for n, step in enumerate(steps):
            ctx.progress(n * 20, f"step {n}")
            await step.wait()

    await work(app)
    handle = await report.dispatch()
    async with client(address, token("user")) as live:
        await live.subscribe(handle.id)
        for n, step in enumerate(steps):
            await live.job(lambda job, n=n: job["progress_message"] == f"step {n}")
            step.set()
        await live.job(lambda job: job["status"] == "completed")


async def test_job_that_awaits_its_output_is_shown_as_running(
    app: Forge, work: Work, address: str, token: MakeToken
) -> None:
    handle, go_on = await complete_early(app, work)

    async with client(address, token("user")) as live:
        await live.subscribe(handle.id)
        first = await live.job()
        go_on.set()
        last = await live.job(lambda job: job["status"] == "completed")

    assert first["status"] == "running"
    assert last["output"] == "receipt"


async def test_followers_see_only_the_live_view(
    address: str, handle: JobHandle, token: MakeToken
) -> None:
    async with client(address, token("user", tenant=7)) as live:
        await live.subscribe(handle.id)
        job = await live.job()

    assert set(job) == {*view.COLUMNS, "state", "output", "undecodable"}
    assert "plans" not in json.dumps(job)


async def test_many_jobs_are_followed_on_one_socket(
    app: Forge, work: Work, address: str, token: MakeToken
) -> None:
    @app.job
    async def echo(ctx: JobContext, input: int) -> int:
        return input

    handles = [await echo.dispatch(n) for n in range(50)]
    async with client(address, token("user")) as live:
        for handle in handles:
            await live.subscribe(handle.id)
        await work(app)
        outputs = {}
        while len(outputs) < 50:
            job = await live.job(lambda job: job["status"] == "completed")
            outputs[job["id"]] = job["output"]

    assert outputs == {str(handle.id): n for n, handle in enumerate(handles)}


async def test_auth_message_authenticates_the_socket(
    address: str, handle: JobHandle, token: MakeToken
) -> None:
    bearer = token("user", tenant=7)["Authorization"].removeprefix("Bearer ")
    async with client(address) as live:
        await live.say("auth", token=bearer)
        await live.subscribe(handle.id)

        assert (await live.job())["id"] == str(handle.id)


async def test_a_watch_token_shows_its_job_and_no_other(
    app: Forge, address: str, handle: JobHandle
) -> None:
    other = await app.dispatch("export", {})
    async with client(address) as live:
        await live.subscribe(handle.id, watch_token=watch_token(handle.id))
        assert (await live.job())["id"] == str(handle.id)

        await live.subscribe(other.id, watch_token=watch_token(handle.id))
        assert_error(await live.next(), "unauthenticated", other.id)

        await live.subscribe(other.id)
        assert_error(await live.next(), "unauthenticated", other.id)


@pytest.mark.parametrize(
    ("roles", "tenant", "sees"),
    [
        (["user"], 7, True),
        (["staff"], 7, True),
        (["user"], 8, False),
        (["staff", "manager"], 8, False),
        (["user"], None, True),
    ],
)
async def test_a_job_is_shown_to_its_tenant_and_to_operators(
    address: str, handle: JobHandle, token: MakeToken, roles: list[str], tenant: Any, sees: bool
) -> None:
    async with client(address, token(*roles, tenant=tenant)) as live:
        await live.subscribe(handle.id)
        message = await live.next()

    if sees:
        assert message["job"]["id"] == str(handle.id)
    else:
        assert_error(message, "not_found", handle.id)


async def test_a_job_without_a_tenant_is_shown_to_operators_only(
    app: Forge, address: str, handle: JobHandle, token: MakeToken
) -> None:
    nobodys = await app.dispatch("export", {})
    async with client(address, token("user", tenant=7)) as live:
        await live.subscribe(nobodys.id)
        assert_error(await live.next(), "not_found", nobodys.id)
    async with client(address, token("user")) as live:
        await live.subscribe(nobodys.id)
        assert (await live.job())["id"] == str(nobodys.id)


async def test_a_job_that_does_not_exist_is_not_found(address: str, token: MakeToken) -> None:
    job_id = uuid4()
    async with client(address, token("user")) as live:
        await live.subscribe(job_id)

        assert_error(await live.next(), "not_found", job_id)


async def test_unsubscribe_stops_updates(
    app: Forge, work: Work, address: str, handle: JobHandle, token: MakeToken
) -> None:
    other = await app.dispatch("export", {}, priority="background")
    async with client(address, token("user")) as live:
        await live.subscribe(handle.id)
        await live.subscribe(other.id)
        assert {(await live.job())["id"], (await live.job())["id"]} == {
            str(handle.id),
            str(other.id),
        }
        await live.say("unsubscribe", job_id=handle.id)
        await live.subscribe(other.id)  # answered after the above was heeded
        await live.job()
        await work(app)
        heard = set()
        job: dict[str, Any] = {"status": ""}
        while job["status"] != "completed":
            job = await live.job()
            heard.add(job["id"])

    assert heard == {str(other.id)}


async def test_second_subscribe_sends_the_state_again(
    address: str, handle: JobHandle, token: MakeToken
) -> None:
    async with client(address, token("user")) as live:
        for _ in range(3):
            await live.subscribe(handle.id)
            assert (await live.job())["status"] == "pending"


async def test_the_socket_works_under_a_prefix(
    app: Forge, handle: JobHandle, make_server_app: MakeServerApp, serve: Serve, token: MakeToken
) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    host: Any = Starlette(routes=[Mount("/jobs", make_server_app(app))])
    async with client(await serve(host) + "/jobs", token("user")) as live:
        await live.subscribe(handle.id)

        assert (await live.job())["id"] == str(handle.id)
