"""No API, log or command shows a secret of a payload."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from forge import Forge, JobContext, JobFailed, JobHandle, ScheduleContext
from forge.core.sensitive.redact import REDACTED
from tests.apps import Work
from tests.cli.command import Project
from tests.faults.kit.process import Child, until, wait_until
from tests.http.admins import DLQ, MANAGER, Admin
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.job_client import paths
from tests.http.live_client import client, events

CANARY = "CANARY-4711"
HEADER = "Bearer CANARYheader1234567890abc"
INPUT = {
    "password": CANARY,
    "headers": {"Authorization": HEADER},
    "pairs": [{"name": "X-Api-Key", "value": "CANARY-pair"}],
    "note": "harmless",
}
# How errors quote what they were given; the last is cut in the middle of it where it is stored.
ERRORS = {
    "value": f"login with {CANARY} failed",
    "repr": f"bad input {INPUT!r}",
    "header": f"401 for {HEADER}, sent as {HEADER.split()[1]}",
    "cut": f"{'x' * 489} {CANARY}",
}
APP = f"""
import forge

app = forge.Forge()
ERRORS = {ERRORS!r}


@app.job(max_attempts=1)
async def leak(ctx: forge.JobContext, input: dict) -> None:
    ctx.progress(10, f"logging in with {{input['password']}}")
    raise ValueError(ERRORS[input["way"]])
"""


@pytest.fixture
def leak(app: Forge) -> Any:
    @app.job(max_attempts=1)
    async def leak(ctx: JobContext, input: dict[str, Any]) -> None:
        ctx.progress(10, f"logging in with {input['password']}")
        ctx.checkpoint = {"token": input["password"], "seen": [input["password"]]}
        raise ValueError(ERRORS[input["way"]])

    return leak


@pytest.fixture
async def address(app: Forge, make_server_app: MakeServerApp, serve: Serve) -> str:
    return await serve(make_server_app(app))


@pytest.mark.parametrize("way", ERRORS)
async def test_no_route_shows_a_secret(
    app: Forge, leak: Any, work: Work, http: httpx.AsyncClient, token: MakeToken, way: str
) -> None:
    handle = await leak.dispatch(INPUT | {"way": way}, tenant_id=7, meta={"api_key": CANARY})
    await work(app)
    with pytest.raises(JobFailed):
        await handle.result(20)
    letter = (await app.dead_letters.list()).items[0].dlq_id
    staff = token("user", *MANAGER)
    edited = {"payload": INPUT | {"way": way}, "notes": f"again with password={CANARY}"}
    assert (
        await http.post(f"{DLQ}{letter}/reprocess/", json=edited, headers=staff)
    ).status_code == 200

    shown = {}
    for path in (
        f"/_api/jobs/{handle.id}",
        f"/_api/jobs/{handle.id}/live",
        f"/_api/jobs/{handle.id}/attempts",
        "/_api/jobs",
        f"/_api/jobs?q={CANARY}",
        "/_api/jobs?status=dead_letter",
        "/api/jobs/admin/queue/",
        DLQ,
        f"{DLQ}?job_type=leak",
        f"{DLQ}{letter}/",
        f"{DLQ}groups/",
        f"{DLQ}groups/?status=reprocessed",
        "/_api/audit",
        "/metrics",
    ):
        answer = await http.get(path, headers=staff)
        assert answer.status_code == 200, answer.text
        shown[path] = answer.text
    dry_run = await http.post(f"{DLQ}reprocess/", json={"dry_run": True}, headers=staff)
    shown["dry run"] = dry_run.text

    assert [path for path, text in shown.items() if "CANARY" in text] == []
    assert json.loads(shown["/_api/jobs"])["items"]
    assert json.loads(shown[f"/_api/jobs?q={CANARY}"])["items"] == []  # nor can it be guessed
    job = json.loads(shown[f"/_api/jobs/{handle.id}"])
    assert (job["input"]["password"], job["input"]["note"]) == (REDACTED, "harmless")
    assert job["checkpoint"] == {"token": REDACTED, "seen": [REDACTED]}
    assert (await handle.get()).input == INPUT | {"way": way}  # the job itself has it


async def test_followers_are_not_shown_a_secret(
    app: Forge, leak: Any, work: Work, address: str, token: MakeToken
) -> None:
    handle = await leak.dispatch(INPUT | {"way": "value"}, tenant_id=7)
    shown_to_followers = []

    async with (
        client(address, token("user", tenant=7)) as live,
        events(address, handle.id, token("user", tenant=7)) as stream,
    ):
        await live.subscribe(handle.id)
        shown_to_followers.append(await live.job())
        await work(app)
        shown_to_followers.append(await live.job(lambda job: job["state"] == "failed"))
        while (event := await stream.next()) is not None:
            shown_to_followers.append(event)

    assert "CANARY" not in json.dumps(shown_to_followers)
    assert shown_to_followers[1]["progress_message"] == f"logging in with {REDACTED}"
    assert shown_to_followers[1]["last_error"] == f"login with {REDACTED} failed"


async def test_what_a_type_allows_is_shown(
    app: Forge, work: Work, address: str, http: httpx.AsyncClient, token: MakeToken
) -> None:
    @app.job(allow_sensitive=["page_token"])
    async def walk(ctx: JobContext, input: dict[str, Any]) -> Any:
        ctx.progress(50, f"after {input['page_token']}")
        return input | {"refresh_token": CANARY}

    handle = await walk.dispatch({"page_token": "page-12345", "access_token": CANARY})
    await work(app)
    await handle.result(20)

    job = (await http.get(f"/_api/jobs/{handle.id}", headers=token("user"))).json()
    async with client(address, token("user")) as live:
        await live.subscribe(handle.id)
        followed = await live.job()

    assert job["input"] == {"page_token": "page-12345", "access_token": REDACTED}
    output = {"page_token": "page-12345", "access_token": REDACTED, "refresh_token": REDACTED}
    assert job["output"] == followed["output"] == output
    assert job["progress_message"] == followed["progress_message"] == "after page-12345"


async def test_a_schedule_does_not_show_a_secret(
    app: Forge, work: Work, http: httpx.AsyncClient, token: MakeToken
) -> None:
    @app.schedule("pull")
    async def pull(ctx: ScheduleContext, payload: dict[str, Any]) -> None:
        raise ValueError(f"login with {payload['password']} failed")

    made = await app.schedules.ensure("pull", "", {"password": CANARY, "n": 1}, every="1h")
    await work(app)

    async def failed() -> Any:
        found = await http.get(f"/_api/schedules/{made.id}", headers=token("staff"))
        return found if found.json()["last_error"] else None

    shown: Any = await until(failed, 20, "the schedule has run")
    listed = await http.get("/_api/schedules", headers=token("staff"))
    assert "CANARY" not in shown.text + listed.text
    assert shown.json()["payload"] == {"password": REDACTED, "n": 1}
    assert REDACTED in shown.json()["recent_runs"][0]["error"]


async def test_redaction_mark_in_a_payload_does_not_count_as_an_edit(
    leak: Any, app: Forge, work: Work, operator: Admin
) -> None:
    handle: JobHandle = await leak.dispatch(INPUT | {"way": "value"})
    await work(app)
    with pytest.raises(JobFailed):
        await handle.result(20)
    letter = (await app.dead_letters.list()).items[0].dlq_id
    shown = (await operator.get(f"{letter}/")).json()["payload"]

    refused = await operator.post(f"{letter}/reprocess/", {"payload": shown | {"note": "mended"}})
    taken = await operator.post(f"{letter}/reprocess/")

    assert set(paths(refused)) == {
        "$.payload.password",
        "$.payload.headers.Authorization",
        "$.payload.pairs[0].value",
    }
    assert "write the value itself, or leave it out to keep it" in refused.text
    assert taken.status_code == 200
    assert (await app.get(taken.json()["new_job_id"])).input == INPUT | {"way": "value"}


async def test_no_log_and_no_command_shows_a_secret(
    app: Forge, database_url: str, tmp_path: Path
) -> None:
    await app.schedules.ensure("pull", "", INPUT, every="1h")
    (tmp_path / "leaky.py").write_text(APP)
    project = Project(database_url, tmp_path)

    shown = await asyncio.to_thread(_shown_by_commands, project)

    assert {"log as text", "log as json", "watched", "audit --json"} <= shown.keys()
    assert [name for name, text in shown.items() if "CANARY" in text] == []
    assert [name for name, text in shown.items() if REDACTED not in text] == []


def _shown_by_commands(project: Project) -> dict[str, str]:
    """Run jobs that leak, and return the logs and the output of each command."""
    shown: dict[str, str] = {}
    for log_format in ("text", "json"):
        with project.worker("--log-format", log_format, app="leaky:app") as worker:
            for way in ERRORS:
                value = json.dumps(INPUT | {"way": way})
                ((job_id,),) = project.rows("select forge_dispatch('leak', %s)", value)
                project.wait_for_status(str(job_id), "dead_letter")
            wait_until(lambda worker=worker: _buried(worker) == len(ERRORS), 30, "it is logged")
            if log_format == "json":
                watched = project.forge(
                    "dispatch", "leak", json.dumps(INPUT | {"way": "value"}), "--watch", "--json"
                )
                shown["watched"] = watched.stdout + watched.stderr
            shown[f"log as {log_format}"] = worker.output()
    letter, discarded = [
        str(row[0]) for row in project.rows("select dlq_id from forge_dead_letters order by 1")[:2]
    ]
    project.forge("dlq", "discard", discarded, "--notes", f"wrong password={CANARY}")
    for command in (
        ["jobs", "show", str(job_id)],
        ["jobs", "list"],
        ["dlq", "show", letter],
        ["dlq", "list"],
        ["dlq", "groups"],
        ["dlq", "reprocess", "--all", "--dry-run"],
        ["schedules", "show", "pull"],
        ["audit"],
    ):
        for options in ([], ["--json"]):
            ended = project.forge(*command, *options)
            assert ended.returncode == 0, ended.stderr
            shown[" ".join([*command[:2], *options])] = ended.stdout
    return shown


def _buried(worker: Child) -> int:
    return worker.output().count("became a dead letter")
