"""Server-sent events: live updates of one job."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest

from forge import Forge, JobContext, JobHandle
from forge.http.live import event_stream, view
from tests.apps import Work
from tests.faults.kit.process import until
from tests.http.conftest import MakeToken
from tests.http.live.conftest import PassTime
from tests.http.live_client import events, watch_token
from tests.worker.early_completion import complete_early


@pytest.fixture
async def handle(app: Forge) -> JobHandle:
    """A job of tenant 7 that waits."""

    @app.job
    async def export(ctx: JobContext, input: dict[str, Any]) -> dict[str, Any]:
        ctx.progress(40, "two\nlines")
        return input

    return await export.dispatch({"known": "plans"}, tenant_id=7)


async def test_stream_sends_each_change_until_the_end(
    app: Forge, work: Work, address: str, handle: JobHandle, token: MakeToken
) -> None:
    seen = []
    async with events(address, handle.id, token("user", tenant=7)) as stream:
        seen.append(await stream.job())
        await work(app)
        while (event := await stream.next()) is not None:
            last_id = event["id"]
            seen.append(json.loads(event["data"]))

    assert [seen[0]["status"], seen[-1]["status"]] == ["pending", "completed"]
    assert (seen[-1]["output"], seen[-1]["progress_message"]) == ({"known": "plans"}, "two\nlines")
    assert set(seen[0]) == {*view.COLUMNS, "state", "output", "undecodable"}
    assert last_id.endswith("-final")


async def test_job_that_awaits_its_output_is_shown_as_running(
    app: Forge, work: Work, address: str, token: MakeToken
) -> None:
    handle, go_on = await complete_early(app, work)

    async with events(address, handle.id, token("user")) as stream:
        assert stream.answer.status_code == 200
        first = await stream.job()
        go_on.set()
        last = await stream.next()
        assert last is not None
        assert await stream.next() is None

    assert (first["status"], first["output"], first["completed_at"]) == ("running", None, None)
    job = json.loads(last["data"])
    assert (job["status"], job["output"]) == ("completed", "receipt")
    assert last["id"].endswith("-final")


async def test_completed_job_is_shown_before_its_handler_returns(
    app: Forge, work: Work, address: str, token: MakeToken
) -> None:
    handle, go_on = await complete_early(app, work, output=None)

    async with events(address, handle.id, token("user")) as stream:
        seen = [await stream.job(), await stream.job()]
        assert await stream.next() is None
    go_on.set()

    assert [job["status"] for job in seen] == ["running", "completed"]


async def test_events_are_not_cached_or_buffered(
    address: str, handle: JobHandle, token: MakeToken
) -> None:
    async with events(address, handle.id, token("user", tenant=7)) as stream:
        headers = stream.answer.headers

    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-store"
    assert headers["x-accel-buffering"] == "no"


async def test_reconnect_gets_the_current_state_or_204(
    app: Forge, work: Work, address: str, handle: JobHandle, token: MakeToken
) -> None:
    caller = token("user")
    async with events(address, handle.id, caller) as stream:
        event = await stream.next()
        assert event is not None
    await work(app)
    await handle.result(10)

    again = caller | {"Last-Event-ID": event["id"]}
    async with events(address, handle.id, again) as stream:
        last = await stream.next()
        assert last is not None
        assert json.loads(last["data"])["status"] == "completed"
        assert await stream.next() is None

    done = caller | {"Last-Event-ID": last["id"]}
    async with events(address, handle.id, done) as stream:
        assert stream.answer.status_code == 204


async def test_a_watch_token_shows_its_job_and_no_other(
    app: Forge, address: str, handle: JobHandle
) -> None:
    other = await app.dispatch("export", {})
    token = watch_token(handle.id)

    async with events(address, handle.id, watch_token=token) as stream:
        assert (await stream.job())["id"] == str(handle.id)
    async with events(address, other.id, watch_token=token) as stream:
        assert await problem(stream) == (401, "unauthenticated")


@pytest.mark.parametrize("lifetime", [-1, 0])
async def test_expired_watch_token_is_refused(
    address: str, handle: JobHandle, lifetime: float
) -> None:
    token = watch_token(handle.id, lifetime=lifetime)

    async with events(address, handle.id, watch_token=token) as stream:
        assert await problem(stream) == (401, "unauthenticated")


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
    address: str, handle: JobHandle, token: MakeToken, roles: list[str], tenant: Any, answer: int
) -> None:
    async with events(address, handle.id, token(*roles, tenant=tenant)) as stream:
        assert stream.answer.status_code == answer


async def test_stream_requires_a_token(address: str, handle: JobHandle) -> None:
    async with events(address, handle.id) as stream:
        assert await problem(stream) == (401, "unauthenticated")


async def test_a_job_that_does_not_exist_is_not_found(address: str, token: MakeToken) -> None:
    async with events(address, uuid4(), token("user")) as stream:
        assert await problem(stream) == (404, "not_found")


async def test_a_job_that_is_deleted_ends_the_stream(
    address: str, handle: JobHandle, token: MakeToken, psql: Any
) -> None:
    async with events(address, handle.id, token("user")) as stream:
        await stream.job()
        await psql.execute("delete from forge_jobs")
        event = await stream.next()

        assert event is not None
        assert event["event"] == "problem"
        assert json.loads(event["data"])["code"] == "not_found"
        assert await stream.next() is None


async def test_expired_token_ends_the_stream(
    address: str, handle: JobHandle, token: MakeToken, pass_time: PassTime
) -> None:
    async with events(address, handle.id, token("user", lifetime=60)) as stream:
        await stream.job()
        pass_time(300)
        event = await stream.next()

        assert event is not None
        assert json.loads(event["data"])["code"] == "unauthenticated"


async def test_keep_alive_comments_are_sent(
    address: str, handle: JobHandle, token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "RECHECK_INTERVAL", 0.02)
    monkeypatch.setattr(event_stream, "KEEP_ALIVE_INTERVAL", 0.04)
    async with events(address, handle.id, token("user")) as stream:
        await stream.job()
        async with asyncio.timeout(10):
            async for line in stream._lines:
                if line == ":":
                    break
            else:
                pytest.fail("the stream ended without a word")


async def test_disconnected_client_is_detected(
    api: Any, address: str, handle: JobHandle, token: MakeToken
) -> None:
    async with events(address, handle.id, token("user")) as stream:
        await stream.job()
        hub = api.state.live_hub.hub
        assert len(hub._watched) == 1

    await until(lambda: hub._watched == {}, 10, "nothing is watched any more")


async def problem(stream: Any) -> tuple[int, str]:
    body = json.loads(await stream.answer.aread())
    return stream.answer.status_code, body["code"]
