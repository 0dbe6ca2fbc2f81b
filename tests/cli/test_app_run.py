"""`app.run()`: a worker and a server in one process."""

import sys
from pathlib import Path

import httpx

from tests.cli.command import Project
from tests.faults.kit.process import Child, spawn, wait_until

MAIN = """
import forge

app = forge.Forge()


@app.job
async def double(ctx: forge.JobContext, input: dict) -> int:
    return 2 * input["n"]


if __name__ == "__main__":
    app.run()
"""


def start(url: str, folder: Path, settings: str) -> Child:
    (folder / "main.py").write_text(MAIN)
    (folder / "forge.toml").write_text(settings)
    return spawn([sys.executable, "main.py"], {"FORGE_DATABASE_URL": url}, cwd=folder)


def test_it_serves_and_works_until_sigterm(database_url: str, tmp_path: Path) -> None:
    token = Project(database_url, tmp_path).json("token", "create", "--name", "me")
    settings = f"""
[auth]
secret = "{"s" * 40}"
[[auth.tokens]]
name = "me"
sha256 = "{token["sha256"]}"
roles = ["user"]
[server]
port = 0
[worker]
metrics_port = "off"
"""
    with start(database_url, tmp_path, settings) as child:
        wait_until(lambda: "listens on" in child.output() or not child.is_alive, 30, "it serves")
        address = child.output().partition("listens on ")[2].split()[0]
        headers = {"Authorization": f"Bearer {token['token']}"}
        wait_until(lambda: " runs double" in child.output() or not child.is_alive, 30, "it works")
        answer = httpx.post(
            f"{address}/_api/jobs/double/dispatch", json={"args": {"n": 21}}, headers=headers
        )
        job = f"{address}/_api/jobs/{answer.json()['job_id']}"
        wait_until(lambda: httpx.get(job, headers=headers).json()["output"] == 42, 30, "it ran")
        child.sigterm()
        assert child.wait(30) == 0, child.output()


def test_app_run_requires_authentication(database_url: str, tmp_path: Path) -> None:
    with start(database_url, tmp_path, "") as child:
        assert child.wait(30) == 1
        assert "the server does not start without authentication" in child.output()
