"""`forge dev`: a database, a worker, and a reload when the code changes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from forge.store.embedded import Cluster
from tests.cli.command import Project
from tests.faults.kit.process import wait_until
from tests.store.commands import is_held, remove_far_socket

CODE = """
import forge
app = forge.Forge()

@app.job
async def answer(ctx, input: dict) -> str:
    return "{answer}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    home = tmp_path / ".forge" / "postgres"
    if home.exists():
        Cluster(home).kill()
        wait_until(lambda: not is_held(home / "stopper.lock"), 30, "its stopper has ended")
        remove_far_socket(home)


def test_dev_reloads_code_and_survives_a_syntax_error(folder: Path) -> None:
    project = Project("", folder)
    project.env = {}
    code = folder / "jobs.py"
    code.write_text(CODE.format(answer="old"))
    with project.start("dev", "jobs:app") as dev:
        wait_until(lambda: dev.output().count(" runs ") == 1, 60, "the worker has begun")
        assert "database: postgresql://" in dev.output()
        assert answer(project) == '"old"'
        me = signed_in(dev.output(), "me")
        assert (me["name"], me["read_only"]) == ("developer", False)
        assert "DELETE /_api/jobs/{job_id}" in me["allowed"]
        findings = signed_in(dev.output(), "findings")["items"]
        assert [each for each in findings if each["severity"] in ("problem", "warning")] == []

        code.write_text("def answer(:")
        wait_until(lambda: "SyntaxError" in dev.output(), 30, "the mistake is shown")
        assert dev.is_alive
        code.write_text(CODE.format(answer="new"))
        wait_until(lambda: dev.output().count(" runs ") == 2, 30, "the worker has begun again")

        assert answer(project) == '"new"'
        dev.sigterm()
        assert dev.wait(30) == 0


def signed_in(output: str, path: str) -> dict[str, Any]:
    """Return what the server answers to the caller whom the printed link signs in."""
    found = re.search(r"server: (http://\S+)/#token=(\S+)", output)
    assert found is not None, output
    headers = {"Authorization": f"Bearer {found[2]}"}
    answer: dict[str, Any] = httpx.get(f"{found[1]}/_api/{path}", headers=headers).json()
    return answer


def answer(project: Project) -> str:
    ended = project.forge("dispatch", "answer", "--watch", "--app", "jobs:app")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()[-1]
