"""The role viewer and read-only servers: they read, and change nothing."""

import json

import httpx
from click.testing import CliRunner

from forge import Forge
from forge.cli.tokens import create
from forge.config.server import ServerConfig
from forge.http.auth.access import Role
from tests.http.bearers import authenticator
from tests.http.conftest import AUTH, MakeServerApp, MakeToken
from tests.http.job_client import add_jobs, code, dispatched
from tests.http.matrix import OWN


def test_created_viewer_token_is_accepted_as_a_viewer() -> None:
    options = ["--name", "wall", "--role", "staff", "--role", "viewer", "--json"]

    made = json.loads(CliRunner().invoke(create, options).output)

    assert made["roles"] == ["viewer", "staff"]
    token = made.pop("token")
    identity = authenticator(tokens=[made]).identify_token(token)
    assert identity.roles == {Role.VIEWER, Role.STAFF}
    assert identity.is_viewer


async def test_viewer_who_is_staff_reads_but_cannot_cancel(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    add_jobs(app)
    job_id = await dispatched(http, token("user", tenant=OWN))
    viewer = token("viewer", "user", "staff", "manager", tenant=OWN)

    refused = await http.post(f"/_api/jobs/{job_id}/cancel", headers=viewer)

    assert code(refused) == (403, "forbidden")
    assert refused.json()["detail"] == (
        "the role viewer may only read; use a token without this role"
    )
    assert (await http.get("/_api/workers", headers=viewer)).status_code == 200
    alone = await http.get("/_api/workers", headers=token("viewer", tenant=OWN))
    assert alone.json()["detail"] == "this route requires the role staff; use a token that has it"


async def test_read_only_server_serves_followers_with_watch_tokens(
    app: Forge, make_server_app: MakeServerApp, token: MakeToken
) -> None:
    add_jobs(app)
    job = await app.dispatch("send_mail", {}, tenant_id=OWN)
    settings = {"server": ServerConfig(read_only=True), "auth": AUTH}
    app.config = app.config.model_copy(update=settings)
    transport = httpx.ASGITransport(make_server_app(app))

    async with httpx.AsyncClient(transport=transport, base_url="http://forge.test") as http:
        live = f"/_api/jobs/{job.id}/live"
        followed = await http.get(live, params={"watch_token": app.watch_token(job.id)})
        refused = await http.post(f"/_api/jobs/{job.id}/watch_token", headers=token("user"))

    assert followed.json()["status"] == "pending"
    assert code(refused) == (403, "read_only")
