"""`forge mcp` as an assistant sees it: the tools of each token, and what they do."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.routing import Mount

from forge import Forge, JobContext, JobFailed
from forge.cli.mcp_server.api import RequestRefused, api_at, api_of
from forge.cli.mcp_server.reading import READING
from forge.cli.mcp_server.result_text import MAX_CHARACTERS, SHORTENED
from forge.cli.mcp_server.server import serve as serve_tools
from forge.cli.mcp_server.writing import WRITING
from forge.core.errors import ConfigError
from forge.core.sensitive.redact import REDACTED
from tests.apps import Work
from tests.cli.command import Project, project_fixture
from tests.cli.mcp_server.assistant import Assistant, assistant, let_in, text_of
from tests.faults.kit.process import until
from tests.http.admins import MANAGER
from tests.http.conftest import (
    MakeServerApp,
    MakeToken,
    Serve,
    api_url,
    make_server_app,
    serve,
    token,
)

__all__ = ["api_url", "make_server_app", "project_fixture", "serve", "token"]

CANARY = "CANARY-4711"
READS, WRITES = {tool.name for tool in READING}, {tool.name for tool in WRITING}
FOR_EVERY_TENANT = {"get_overview", "list_findings", "list_pauses"}
NOISY = "from forge import Forge\n\nprint('imported')\napp = Forge()\n"
OPERATOR = {"roles": list(MANAGER), "tenant_id": None}
REASONS = {
    "with another order",
    "no longer wanted",
    "the bank is down",
    "the bank is up",
    "the bank is up again",
    "ordered twice",
    "all the others",
    "only a test",
}


class Bank:
    """A job type that quotes a secret when it fails: while the bank is down, or for ever."""

    def __init__(self, app: Forge) -> None:
        self.is_up = False

        @app.job(max_attempts=1)
        async def charge(ctx: JobContext, input: dict[str, Any]) -> Any:
            if input.get("is_test"):
                raise LookupError(f"no such card: {input['password']}")
            if not self.is_up:
                raise ConnectionError(f"card {input['password']} refused")
            return input

        self.charge = charge

    async def bury(self, **more: Any) -> str:
        """Make a dead letter, and return the id of its job."""
        handle = await self.charge.dispatch({"order": 42, "password": CANARY, "note": None} | more)
        with pytest.raises(JobFailed):
            await handle.result(30)
        return str(handle.id)


async def test_an_operator_reviews_the_failures_of_a_night(
    app: Forge, work: Work, psql: Any, database_url: str, tmp_path: Path
) -> None:
    bank = Bank(app)
    await work(app)
    failed = [await bank.bury() for _ in range(4)]
    failed.append(await bank.bury(is_test=True))
    waiting = str((await bank.charge.dispatch({}, delay="1h")).id)
    let_in(tmp_path, night=OPERATOR)

    async with assistant(
        "--allow-write", token="night", url=database_url, folder=tmp_path
    ) as night:
        await looks_around(night, failed, waiting)
        bank.is_up = True
        await changes_jobs(night, failed[0], waiting)
        await reviews(night)
        await until(lambda: audited(psql), 60, "each change has its audit event")

    assert (tmp_path / "stderr").read_text() == ""
    assert set(night.tools) == night.called == READS | WRITES
    assert [text for text in night.read if "CANARY" in text or "watch_token" in text] == []


async def looks_around(night: Assistant, failed: list[str], waiting: str) -> None:
    overview = await night.call("get_overview")
    assert overview["dead_letters_waiting"] == 5
    assert "items" in await night.call("list_findings")
    assert "series" in await night.call("get_statistics")
    assert "items" in await night.call("get_statistics_by_type", group="type")
    first = await night.call("list_jobs", status="dead_letter", limit=3)
    rest = await night.call("list_jobs", status="dead_letter", cursor=first["next_cursor"])
    assert [job["id"] for job in first["items"] + rest["items"]] == failed[::-1]
    assert "input" not in first["items"][0]
    assert len((await night.call("list_jobs", input={"order": 42}))["items"]) == 5
    counts = await night.call("count_jobs", type="charge")
    assert counts["by_status"]["dead_letter"]["count"] == 5
    job = await night.call("get_job", job_id=failed[0])
    assert job["input"] == {"order": 42, "password": REDACTED, "note": None}
    assert job["last_error"] == f"card {REDACTED} refused"
    assert "worker_capability" not in job  # it is null
    assert (await night.call("explain_job", job_id=waiting))["reason"] == "due_later"
    timeline = await night.call("get_job_timeline", job_id=failed[0])
    assert "Traceback" in str(timeline["items"])


async def changes_jobs(night: Assistant, failed: str, waiting: str) -> None:
    made = await night.call(
        "rerun_job", job_id=failed, reason="with another order", patch={"order": 43}
    )
    assert (await night.call("get_job", job_id=made["job_id"]))["input"]["order"] == 43
    await night.call("cancel_job", job_id=waiting, reason="no longer wanted")
    pause = {"type": "refund", "for": "1h", "reason": "the bank is down"}
    paused = await night.call("pause_jobs", **pause)
    (listed,) = (await night.call("list_pauses"))["items"]
    assert listed["pause_id"] == paused["pause_id"]
    await night.call("resume_jobs", pause_id=paused["pause_id"], reason="the bank is up")


async def reviews(night: Assistant) -> None:
    refused, unknown = (await night.call("list_dead_letter_groups"))["groups"]
    cause, other = refused["fingerprint"], unknown["fingerprint"]
    letters = (await night.call("list_dead_letters", fingerprint=cause))["dlq_items"]
    first, second, *_ = [letter["dlq_id"] for letter in letters]
    assert (await night.call("get_dead_letter", dlq_id=first))["payload"]["password"] == REDACTED
    one = {"dlq_id": first, "patch": {"order": 44}, "reason": "the bank is up again"}
    assert "new_job_id" not in await night.call("reprocess_dead_letter", dry_run=True, **one)
    assert "new_job_id" in await night.call("reprocess_dead_letter", **one)
    await night.call("discard_dead_letter", dlq_id=second, reason="ordered twice")
    group = {"fingerprint": cause, "reason": "all the others"}
    planned = await night.call("reprocess_dead_letter_group", dry_run=True, **group)
    assert (planned["letters"], "job_id" in planned) == (2, False)
    assert "job_id" in await night.call("reprocess_dead_letter_group", **group)
    await night.call("discard_dead_letter_group", fingerprint=other, reason="only a test")


async def audited(psql: Any) -> bool:
    """Whether each change left an audit event with the token's name; a worker adds the last."""
    found = await psql.fetch("select actor, notes from forge_audit_events")
    assert {row["actor"] for row in found} <= {"night"}
    return {row["notes"] for row in found} == REASONS


async def test_a_viewer_is_offered_nothing_that_writes_even_if_writing_is_allowed(
    app: Forge, database_url: str, tmp_path: Path, psql: Any
) -> None:
    Bank(app)
    job = await app.dispatch("charge", {})
    let_in(tmp_path, wall={"roles": ["viewer", *MANAGER], "tenant_id": None})
    (tmp_path / "noisy.py").write_text(NOISY)
    options = ("--allow-write", "--app", "noisy:app")

    async with assistant(*options, token="wall", url=database_url, folder=tmp_path) as wall:
        assert set(wall.tools) == READS
        for name in WRITES:
            with pytest.raises(MCPError, match=f"there is no tool '{name}' here; use one of get_"):
                await wall.call(name, job_id=str(job.id), reason="to try it")
        let_in(tmp_path, another=OPERATOR)  # this revokes the token

        async def is_revoked() -> bool:
            answer = await wall.client.call_tool("get_overview", {})
            return "unauthenticated: unknown token" in text_of(answer)

        await until(is_revoked, 30, "the token is rejected")

    assert await psql.fetchval("select count(*) from forge_audit_events") == 0
    printed, reloaded = (tmp_path / "stderr").read_text().splitlines()
    assert printed == "imported"  # on stdout it would be no message of the protocol
    assert reloaded.endswith("forge.toml changed and was reloaded")


async def test_a_tenant_sees_only_its_own_jobs_on_a_remote_server(
    app: Forge, make_server_app: MakeServerApp, serve: Serve, token: MakeToken, tmp_path: Path
) -> None:
    Bank(app)
    own = await app.dispatch("charge", {"n": 7, "notes": ["x" * 50_000] * 5}, tenant_id=7)
    other = await app.dispatch("charge", {"n": 8}, tenant_id=8)
    address = await serve(Starlette(routes=[Mount("/jobs", make_server_app(app))]))
    tenant = token("user", *MANAGER, tenant=7)["Authorization"].removeprefix("Bearer ")

    async with assistant("--url", f"{address}/jobs/", token=tenant, folder=tmp_path) as seven:
        assert set(seven.tools) == READS - FOR_EVERY_TENANT
        listed = await seven.call("list_jobs")
        assert [job["id"] for job in listed["items"]] == [str(own.id)]
        answer = await seven.client.call_tool("get_job", {"job_id": str(own.id)})
        shown, advice = [block.text for block in answer.content if block.type == "text"]
        assert json.loads(shown)["input"]["n"] == 7
        assert (len(shown) <= MAX_CHARACTERS, advice) == (True, SHORTENED)
        for tool in ("get_job", "explain_job", "get_job_timeline"):
            assert "not_found: " in await seven.refusal(tool, job_id=str(other.id))
        assert "forbidden: " in await seven.refusal("list_jobs", tenant_id=8)
        assert "does not match" in await seven.refusal("get_job", job_id="../me")
        assert "'job_id' is a required property" in await seven.refusal("get_job")
        assert "'sort' was unexpected" in await seven.refusal("list_jobs", sort="id")
        assert "'broken' is not one of" in await seven.refusal("list_jobs", status="broken")
        assert "invalid: query.since: " in await seven.refusal("list_jobs", since="yesterday")


def test_a_missing_token_is_an_error_on_stderr(project: Project) -> None:
    ended = project.forge("mcp", stdin="")

    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert "forge: no token; set FORGE_TOKEN, or create a token that only reads" in ended.stderr


async def test_an_unknown_token_is_refused_at_the_start(app: Forge) -> None:
    with pytest.raises(RequestRefused, match="unauthenticated: no tokens are configured; create"):
        async with api_of(app, "guess") as api:
            await serve_tools(api, allow_write=True)


async def test_an_address_without_a_server_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match="is not the address of a server; write it as"):
        async with api_at("jobs.test", "a"):
            pass
    with pytest.raises(RequestRefused, match=r"cannot reach http://127\.0\.0\.1:1"):
        async with api_at("http://127.0.0.1:1", "a") as api:
            await serve_tools(api, allow_write=True)
