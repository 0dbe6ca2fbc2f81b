"""`forge server` and `forge dev` as processes: authentication, serving and shutdown."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from forge import Config
from tests.cli.command import APPS, Project
from tests.faults.kit.process import Child, wait_until

SECRET = "a secret of thirty-two characters or more"


@pytest.fixture
def project(database_url: str, tmp_path: Path) -> Project:
    """An app in its own folder, on the test's database."""
    (tmp_path / "shop.py").write_text((APPS / "shop.py").read_text())
    return Project(database_url, tmp_path)


@pytest.fixture
def token(project: Project) -> str:
    """A token of the project, whose settings let it in."""
    return let_in(project, "--role", "user", "--role", "staff")


@pytest.fixture
def serving(project: Project, token: str) -> Iterator[Child]:
    with project.start("server", "shop:app", "--port", "0") as child:
        yield child


def let_in(project: Project, *options: str) -> str:
    """Create a token with the command, and add its output to the settings."""
    ended = project.forge("token", "create", "--name", "ann", *options)
    assert ended.returncode == 0, ended.stderr
    token = re.search(r"^token: (forge_\S{43})$", ended.stdout, re.MULTILINE)
    assert token is not None
    block = ended.stdout[ended.stdout.index("[[auth.tokens]]") :]
    (project.folder / "forge.toml").write_text(f'[auth]\nsecret = "{SECRET}"\n\n{block}')
    return token[1]


def address(child: Child) -> str:
    found = wait_until(
        lambda: re.search(r"http://127\.0\.0\.1:\d+", child.output()) or not child.is_alive,
        30,
        "the server says where it listens",
    )
    assert isinstance(found, re.Match), child.output()
    return found[0]


def test_server_requires_authentication(project: Project) -> None:
    ended = project.forge("server", "shop:app")

    assert ended.returncode == 2
    assert "forge token create" in ended.stderr


def test_server_requires_a_secret(project: Project, token: str) -> None:
    settings = project.folder / "forge.toml"
    settings.write_text(settings.read_text().replace("secret", "# secret"))

    ended = project.forge("server", "shop:app")

    assert ended.returncode == 2
    assert "[auth] secret" in ended.stderr


def test_server_serves_and_exits_cleanly(serving: Child, token: str) -> None:
    at = address(serving)

    assert httpx.get(f"{at}/readyz").json() == {"status": "ready"}
    renew = f"{at}/_api/jobs/{'0' * 32}/watch_token"
    assert httpx.post(renew).status_code == 401
    known = {"Authorization": f"Bearer {token}"}
    assert httpx.post(renew, headers=known).status_code == 404
    serving.sigterm()
    assert serving.wait(20) == 0


def test_revoked_token_is_refused(project: Project, serving: Child, token: str) -> None:
    renew = f"{address(serving)}/_api/jobs/{'0' * 32}/watch_token"
    known = {"Authorization": f"Bearer {token}"}
    assert httpx.post(renew, headers=known).status_code == 404

    let_in(project)

    wait_until(
        lambda: httpx.post(renew, headers=known).status_code == 401, 5, "the token is withdrawn"
    )


def test_port_in_use_is_reported(project: Project, token: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        ended = project.forge("server", "shop:app", "--port", port)

    assert ended.returncode == 1
    assert f"127.0.0.1:{port}: the port is in use" in ended.stderr
    assert "--port" in ended.stderr


def test_running_requests_finish_at_shutdown(project: Project, serving: Child, token: str) -> None:
    at = address(serving)
    assert httpx.get(f"{at}/livez").status_code == 200
    with httpx.Client(base_url=at) as client, client.stream("GET", "/livez") as answer:
        serving.sigterm()
        assert json.loads(answer.read()) == {"status": "alive"}

    assert serving.wait(20) == 0


def test_followers_do_not_delay_the_shutdown(project: Project, serving: Child, token: str) -> None:
    at = address(serving)
    assert project.forge("migrate", "--app", "shop:app").returncode == 0
    job = project.dispatch("greet", {"name": "ann"})
    known = {"Authorization": f"Bearer {token}"}
    with (
        httpx.Client(base_url=at, headers=known, timeout=30) as client,
        client.stream("GET", f"/_api/jobs/{job}/events") as events,
    ):
        lines = events.iter_lines()
        wait_until(lambda: next(lines).startswith("event: job"), 10, "its state is sent")

        serving.sigterm()

        for _ in lines:  # until the server ends the stream
            pass
    assert serving.wait(20) == 0
    assert "graceful shutdown exceeded" not in serving.output()


def test_the_access_log_shows_no_watch_token(project: Project, token: str) -> None:
    with project.start("server", "shop:app", "--port", "0", "--access-log") as serving:
        events = f"{address(serving)}/_api/jobs/{'0' * 32}/events?watch_token=hush&x=1"

        assert httpx.get(events).status_code == 422
        wait_until(lambda: "&x=1" in serving.output(), 10, "the request is logged")

        assert "watch_token=***&x=1" in serving.output()
        assert "hush" not in serving.output()


def test_server_uses_its_own_database_login(project: Project, token: str) -> None:
    assert project.forge("migrate", "--roles").returncode == 0
    project.env["FORGE_SERVER_DATABASE_URL"] = project.url.replace("//forge@", "//forge_api@")
    with project.start("server", "shop:app", "--port", "0") as serving:
        assert httpx.get(f"{address(serving)}/readyz").status_code == 200

        users = project.rows(
            "select distinct usename from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )

    assert users == [("forge_api",)]


def test_missing_extra_is_explained(project: Project) -> None:
    missing = (
        "import sys; sys.modules |= dict.fromkeys(['fastapi', 'starlette', 'uvicorn', 'jwt']);"
        "from forge.cli.main import run; sys.exit(run(['server', 'shop:app']))"
    )

    ended = subprocess.run(
        [sys.executable, "-c", missing],
        cwd=project.folder,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == 2
    assert "needs fastapi, uvicorn, jwt; run `pip install 'forge-jobs[server]'`" in ended.stderr


def test_token_create_as_json(project: Project) -> None:
    made = project.json("token", "create", "--name", "ann", "--tenant", "7")

    assert set(made) == {"token", "name", "sha256", "roles", "tenant_id", "expires_at"}
    assert (made["roles"], made["tenant_id"], made["expires_at"]) == (["user"], 7, None)


@pytest.mark.parametrize(
    ("given", "written"),
    [("2099-01-31", "2099-01-31T00:00:00Z"), ("2099-01-31T12:00:00+02:00", "2099-01-31T10:00:00Z")],
)
def test_token_expires_at_a_time(project: Project, given: str, written: str) -> None:
    made = project.json("token", "create", "--name", "ann", "--expires", given)

    assert made["expires_at"] == written


def test_token_expires_after_a_duration(project: Project) -> None:
    let_in(project, "--expires", "90d")

    (token,) = Config.load(project.folder / "forge.toml", env={}).auth.tokens

    assert token.expires_at is not None
    assert timedelta(days=89) < token.expires_at - datetime.now(UTC) < timedelta(days=91)


@pytest.mark.parametrize("given", ["soon", "2020-01-01", "0d", ""])
def test_past_or_invalid_expiry_is_refused(project: Project, given: str) -> None:
    ended = project.forge("token", "create", "--name", "ann", "--expires", given)

    assert ended.returncode == 2
    assert "--expires" in ended.stderr


def test_manager_role_requires_staff(project: Project) -> None:
    ended = project.forge("token", "create", "--name", "ann", "--role", "manager")

    assert ended.returncode == 2
    assert "--role staff" in ended.stderr


def test_development_server_accepts_local_programs_without_a_token(project: Project) -> None:
    with project.start("dev", "shop:app", "--port", "0") as dev:
        at = address(dev)
        wait_until(lambda: " runs " in dev.output(), 30, "the worker runs")
        dispatch = f"{at.replace('127.0.0.1', 'localhost')}/_api/jobs/greet/dispatch"
        curl = ["curl", "-s", "-X", "POST", dispatch]
        body = ["-d", '{"args": {"name": "Ada"}}']
        json_body = ["-H", "Content-Type: application/json", *body]

        answer = subprocess.run([*curl, *json_body], capture_output=True, check=True, text=True)
        job_id = json.loads(answer.stdout)["job_id"]
        project.wait_for_status(job_id, "completed")
        for refused in (
            body,
            [*json_body, "-H", "Origin: http://localhost"],
            [*json_body, "-H", "X-Forwarded-For: 192.0.2.1"],
            [*json_body, "-H", "Sec-Fetch-Site: same-origin"],
            [*json_body, "-H", "Host: pages.example"],
            [*json_body, "-H", "Authorization: Bearer wrong"],
        ):
            answer = subprocess.run([*curl, *refused], capture_output=True, check=True, text=True)
            assert json.loads(answer.stdout)["status"] == 401, refused
        assert "programs on this machine can dispatch without a token" in dev.output()


def test_production_server_requires_a_token_locally(project: Project) -> None:
    let_in(project, "--role", "user")
    assert project.forge("migrate", "--app", "shop:app").returncode == 0
    with project.start("server", "shop:app", "--port", "0") as serving:
        answer = httpx.post(f"{address(serving)}/_api/jobs/greet/dispatch", json={"args": {}})

    assert answer.status_code == 401
    assert project.rows("select id from forge_jobs") == []


def test_printed_link_signs_in(project: Project) -> None:
    (project.folder / "forge.toml").write_text('[server]\nhost = "0.0.0.0"\n')
    with project.start("dev", "shop:app", "--port", "0") as dev:
        at = address(dev)
        (token,) = re.findall(r"/#token=(forge_\S+)", dev.output())
        renew = f"{at}/_api/jobs/{'0' * 32}/watch_token"
        known = {"Authorization": f"Bearer {token}"}

        assert httpx.post(renew, timeout=30).status_code == 401
        wait_until(
            lambda: httpx.post(renew, headers=known, timeout=30).status_code == 404,
            30,
            "the database is migrated",
        )
        # The same address and the same token serve the new code.
        (project.folder / "other.py").write_text("")
        wait_until(lambda: dev.output().count("server listens") == 2, 30, "it has begun again")
        assert httpx.post(renew, headers=known, timeout=30).status_code == 404

        dev.sigterm()
        assert dev.wait(30) == 0
