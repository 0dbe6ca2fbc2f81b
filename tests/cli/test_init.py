"""`forge init`: a project that runs and whose test passes, as its README says."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from forge.store.embedded import Cluster
from tests.cli.command import FORGE
from tests.surface.pages import CHECKOUT

BIN = Path(sys.executable).parent


def run(command: str, folder: Path, code: int = 0, **env: str) -> str:
    own = {k: v for k, v in os.environ.items() if not k.startswith(("FORGE_", "PG", "DJANGO_"))}
    own["PATH"] = f"{BIN}{os.pathsep}{own['PATH']}"
    ended = subprocess.run(
        command.split(), cwd=folder, env=own | env, capture_output=True, text=True, timeout=110
    )
    assert ended.returncode == code, f"{command}:\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout + ended.stderr


@pytest.mark.parametrize("kind", ["", "--fastapi"])
def test_the_tests_of_a_project_pass(kind: str, tmp_path: Path, server: Cluster) -> None:
    printed = run(f"{FORGE} init shop {kind} --docker", tmp_path)

    assert "  cd shop\n  pip install -r requirements.txt\n  pytest\n  forge dev" in printed
    tested = run("pytest", tmp_path / "shop", FORGE_TEST_DATABASE_URL=server.url("postgres"))
    assert "2 passed" in tested
    own = (CHECKOUT / "deploy" / "container" / "Dockerfile").read_text()
    assert (tmp_path / "shop" / "Dockerfile").read_text() == own


def test_a_django_project_is_migrated_and_tested(
    tmp_path: Path, empty_url: str, server: Cluster
) -> None:
    run(f"{FORGE} init . --django", tmp_path)
    address = urlsplit(empty_url)
    place = parse_qs(address.query)
    env = {
        "PGDATABASE": address.path[1:],
        "PGUSER": address.username or "",
        "PGHOST": place["host"][0],
        "PGPORT": place["port"][0],
    }

    assert "Ran 1 test" in run("python manage.py test --no-input", tmp_path, **env)
    run("python manage.py migrate", tmp_path, **env)
    command = 'python manage.py forge dispatch export_users {"format":"csv"}'
    assert len(run(command, tmp_path, **env).strip()) == 36


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text("mine")

    printed = run(f"{FORGE} init", tmp_path, code=1)

    assert "has jobs.py already, and nothing is overwritten" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.py"]


def test_programs_can_read_what_was_written(tmp_path: Path) -> None:
    answer = json.loads(run(f"{FORGE} init shop --json", tmp_path))

    assert answer["kind"] == "plain"
    assert {"jobs.py", "test_jobs.py", "forge.toml"} <= set(answer["files"])
    assert all((tmp_path / "shop" / name).is_file() for name in answer["files"])
