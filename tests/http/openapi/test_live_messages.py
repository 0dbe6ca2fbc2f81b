"""What the live routes send and accept fits the components of the OpenAPI document."""

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from jsonschema import Draft202012Validator, FormatChecker

from forge import Forge, JobContext, JobHandle
from forge.http.live import messages
from forge.http.openapi.document import document
from forge.http.problems.problem import Problem
from tests.apps import Work
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.live_client import client, events

JOB_ID = str(uuid4())


class Components:
    """The components of a document, against which values are checked."""

    def __init__(self, document: Any) -> None:
        self.document = document

    def check(self, component: str, value: Any) -> None:
        """Raise unless a value fits a component."""
        self._validator(component).validate(value)

    def fits(self, component: str, value: Any) -> bool:
        return self._validator(component).is_valid(value)

    def _validator(self, component: str) -> Any:
        reference = {"$ref": f"#/components/schemas/{component}"}
        return Draft202012Validator(self.document | reference, format_checker=FormatChecker())


@pytest.fixture
def api(app: Forge, make_server_app: MakeServerApp) -> FastAPI:
    return make_server_app(app)


@pytest.fixture
async def address(api: FastAPI, serve: Serve) -> str:
    return await serve(api)


@pytest.fixture
def components(api: FastAPI) -> Components:
    return Components(document(api))


@pytest.fixture
async def handle(app: Forge) -> JobHandle:
    """A job that waits; it will report progress, fail once and succeed."""

    @app.job
    async def export(ctx: JobContext) -> dict[str, list[int]]:
        ctx.progress(40, "almost")
        if ctx.attempt == 1:
            raise ConnectionError("not now")
        return {"rows": [1, 2]}

    return await export.dispatch()


async def test_every_message_of_a_job_fits(
    app: Forge,
    work: Work,
    address: str,
    components: Components,
    handle: JobHandle,
    token: MakeToken,
) -> None:
    path, caller = f"/_api/jobs/{handle.id}/live", token("user")
    polled, sent, streamed = [], [], []
    async with (
        client(address, caller) as live,
        events(address, handle.id, caller) as stream,
        httpx.AsyncClient(base_url=address, headers=caller) as http,
    ):
        await live.subscribe(handle.id)
        sent.append(await live.next())
        await work(app)
        while sent[-1]["job"]["state"] != "completed":
            polled.append((await http.get(path)).json())
            sent.append(await live.next())
        polled.append((await http.get(path)).json())
        while (event := await stream.next()) is not None:
            streamed.append(event)

    for message in sent:
        components.check("ServerMessage", message)
        components.check("JobMessage", message)
    for job in (*polled, *(json.loads(event["data"]) for event in streamed)):
        components.check("LiveJob", job)
    fields = set(components.document["components"]["schemas"]["LiveJob"]["properties"])
    assert {tuple(job) for job in (*polled, sent[0]["job"])} == {tuple(polled[0])}
    assert set(polled[0]) == fields
    assert sent[-1]["job"]["output"] == {"rows": [1, 2]}


async def test_every_error_fits(
    address: str, components: Components, handle: JobHandle, token: MakeToken, psql: Any
) -> None:
    async with client(address, token("user")) as live:
        await live.say("subscribe", job_id="17")
        without_job = await live.next()
        await live.subscribe(uuid4())
        with_job = await live.next()
    async with events(address, handle.id, token("user")) as stream:
        await stream.job()
        await psql.execute("delete from forge_jobs")
        ended = await stream.next()

    for message in (without_job, with_job):
        components.check("ServerMessage", message)
        components.check("ErrorMessage", message)
    assert "job_id" not in without_job
    assert "job_id" in with_job
    assert ended is not None
    components.check("LiveProblem", json.loads(ended["data"]))


async def test_the_routes_refer_to_the_components(components: Components) -> None:
    paths = components.document["paths"]
    live = paths["/_api/jobs/{job_id}/live"]["get"]["responses"]["200"]["content"]
    stream = paths["/_api/jobs/{job_id}/events"]["get"]["responses"]["200"]["content"]
    schemas = stream["text/event-stream"]["schema"]["oneOf"]

    assert live["application/json"]["schema"] == {"$ref": "#/components/schemas/LiveJob"}
    assert {
        event["properties"]["event"]["const"]: event["properties"]["data"]["contentSchema"]["$ref"]
        for event in schemas
    } == {"job": "#/components/schemas/LiveJob", "problem": "#/components/schemas/LiveProblem"}
    assert components.document["x-forge-websocket"] == {
        "path": "/_api/ws",
        "client": {"$ref": "#/components/schemas/ClientMessage"},
        "server": {"$ref": "#/components/schemas/ServerMessage"},
    }


@pytest.mark.parametrize(
    ("message", "is_accepted"),
    [
        ({"type": "auth", "token": "t"}, True),
        ({"type": "subscribe", "job_id": JOB_ID}, True),
        ({"type": "subscribe", "job_id": JOB_ID, "watch_token": "t"}, True),
        ({"type": "subscribe", "job_id": JOB_ID, "watch_token": None}, True),
        ({"type": "unsubscribe", "job_id": JOB_ID}, True),
        ({"type": "auth"}, False),
        ({"type": "auth", "token": "t", "job_id": JOB_ID}, False),
        ({"type": "subscribe"}, False),
        ({"type": "subscribe", "job_id": 17}, False),
        ({"type": "unsubscribe", "job_id": JOB_ID, "watch_token": "t"}, False),
        ({"type": "ping"}, False),
        ({"job_id": JOB_ID}, False),
    ],
)
def test_a_client_message_is_accepted_if_it_fits(
    components: Components, message: Any, is_accepted: bool
) -> None:
    def is_read() -> bool:
        try:
            messages.read({"type": "websocket.receive", "text": json.dumps(message)})
        except Problem:
            return False
        return True

    assert components.fits("ClientMessage", message) is is_accepted
    assert is_read() is is_accepted


@pytest.mark.parametrize(
    "change",
    [
        {"version": None},
        {"version": 1.5},
        {"status": "done"},
        {"created_at": "yesterday"},
        {"id": "17"},
        {"progress_percent": "40"},
    ],
)
async def test_another_shape_of_a_job_does_not_fit(
    address: str, components: Components, handle: JobHandle, token: MakeToken, change: Any
) -> None:
    async with client(address, token("user")) as live:
        await live.subscribe(handle.id)
        job = await live.job()

    components.check("LiveJob", job)
    assert not components.fits("LiveJob", job | change)
    assert not components.fits("LiveJob", {k: v for k, v in job.items() if k not in change})
