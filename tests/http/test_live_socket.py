"""The socket: who may follow what, what they are shown, and what they may say."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest
from websockets.exceptions import InvalidStatus

from forge import Forge, JobContext, JobHandle
from forge.http import live_conversation, live_view
from tests.flow.engine.conftest import Work
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.live_client import client, watch_token


@pytest.fixture
async def address(app: Forge, make_server_app: MakeServerApp, serve: Serve) -> str:
    return await serve(make_server_app(app))


@pytest.fixture
async def handle(app: Forge) -> JobHandle:
    """A job of tenant 7 that waits."""

    @app.job
    async def export(ctx: JobContext, input: dict[str, Any]) -> dict[str, Any]:
        ctx.progress(40, "almost")
        return input

    return await export.dispatch({"known": "plans"}, tenant_id=7, tags=["a"])


async def test_a_job_is_shown_as_it_stands_and_at_each_change(
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


async def test_every_step_that_lasts_is_shown(
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


async def test_no_more_is_shown_than_a_follower_needs(
    address: str, handle: JobHandle, token: MakeToken
) -> None:
    async with client(address, token("user", tenant=7)) as live:
        await live.subscribe(handle.id)
        job = await live.job()

    assert set(job) == {*live_view.COLUMNS, "state", "output"}
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


async def test_who_speaks_may_be_said_in_the_first_message(
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
        told = await live.next()

    if sees:
        assert told["job"]["id"] == str(handle.id)
    else:
        assert_error(told, "not_found", handle.id)


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


async def test_who_unsubscribes_hears_no_more_of_that_job(
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


async def test_who_subscribes_again_is_shown_the_present_again(
    address: str, handle: JobHandle, token: MakeToken
) -> None:
    async with client(address, token("user")) as live:
        for _ in range(3):
            await live.subscribe(handle.id)
            assert (await live.job())["status"] == "pending"


@pytest.mark.parametrize("scheme", ["Bearer nonsense", "Basic YTpi"])
async def test_a_bad_header_is_refused_before_there_is_a_socket(address: str, scheme: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with client(address, {"Authorization": scheme}):
            pass

    assert refused.value.response.status_code == 401
    assert json.loads(refused.value.response.body)["code"] == "unauthenticated"


async def test_a_bad_token_in_the_first_message_ends_the_conversation(address: str) -> None:
    async with client(address) as live:
        await live.say("auth", token="nonsense")

        assert_error(await live.next(), "unauthenticated")
        assert await live.closed() == 4401


async def test_a_token_without_a_role_is_refused(address: str, token: MakeToken) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with client(address, token("manager")):
            pass

    assert refused.value.response.status_code == 403


async def test_who_never_says_who_they_are_is_sent_away(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_conversation, "INTRODUCTION", 0.2)
    monkeypatch.setattr(live_conversation, "RECHECK", 0.1)
    async with client(address) as live:
        await live.say("subscribe", job_id=uuid4())
        assert_error(await live.next(), "unauthenticated")

        assert await live.closed() == 4401


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("no json", "bad_request"),
        (b"{}", "bad_request"),
        ("[]", "invalid"),
        ("{}", "invalid"),
        ('{"type":"dance"}', "invalid"),
        ('{"type":"subscribe"}', "invalid"),
        ('{"type":"subscribe","job_id":"x"}', "invalid"),
        ('{"type":"subscribe","job_id":7}', "invalid"),
        ('{"type":"auth","token":null}', "invalid"),
        ('{"type":"auth","token":"x","more":1}', "invalid"),
        ("[" * 30_000, "bad_request"),
    ],
)
async def test_what_cannot_be_read_is_an_error_and_nothing_more(
    address: str, handle: JobHandle, token: MakeToken, said: str | bytes, code: str
) -> None:
    async with client(address, token("user")) as live:
        await live.socket.send(said)
        assert_error(await live.next(), code)

        await live.subscribe(handle.id)
        assert (await live.job())["id"] == str(handle.id)


async def test_a_message_that_is_too_large_ends_the_conversation(
    address: str, token: MakeToken
) -> None:
    async with client(address, token("user")) as live:
        await live.socket.send(json.dumps({"type": "auth", "token": "x" * 70_000}))

        assert await live.closed() == 1009


async def test_a_socket_follows_so_many_jobs_and_no_more(
    address: str, handle: JobHandle, token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_conversation, "MOST_SUBSCRIPTIONS", 1)
    one_too_many = uuid4()
    async with client(address, token("user")) as live:
        await live.subscribe(handle.id)
        await live.subscribe(one_too_many)
        told = [await live.next(), await live.next()]

        (error,) = [message for message in told if message["type"] == "error"]
        assert_error(error, "too_many", one_too_many)
        await live.subscribe(handle.id)
        await live.job()


@pytest.mark.parametrize(
    ("origin", "is_let_in"),
    [
        ("same", True),
        ("https://app.example", True),
        ("https://app.example.evil", False),
        ("https://app.example:8443", False),
        ("http://app.example", False),
        ("http://evil.example", False),
        ("null", False),
        ("", False),
    ],
)
async def test_pages_of_other_origins_get_no_socket(
    make_app: Any,
    make_server_app: MakeServerApp,
    serve: Serve,
    token: MakeToken,
    origin: str,
    is_let_in: bool,
) -> None:
    app = make_app(server={"allowed_origins": ["https://app.example"]})
    address = await serve(make_server_app(app))
    headers = token("user") | {"Origin": address if origin == "same" else origin}

    if is_let_in:
        async with client(address, headers) as live:
            await live.say("unsubscribe", job_id=uuid4())
    else:
        with pytest.raises(InvalidStatus) as refused:
            async with client(address, headers):
                pass
        assert refused.value.response.status_code == 403


async def test_the_socket_works_under_a_prefix(
    app: Forge, handle: JobHandle, make_server_app: MakeServerApp, serve: Serve, token: MakeToken
) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    host: Any = Starlette(routes=[Mount("/jobs", make_server_app(app))])
    async with client(await serve(host) + "/jobs", token("user")) as live:
        await live.subscribe(handle.id)

        assert (await live.job())["id"] == str(handle.id)


def assert_error(told: dict[str, Any], code: str, job_id: Any = None) -> None:
    assert (told["type"], told["code"]) == ("error", code), told
    assert told["message"]
    if job_id is not None:
        assert told["job_id"] == str(job_id)
