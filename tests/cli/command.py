"""Runs the `forge` executable in tests."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.faults.kit.process import Child, spawn, wait_until

FORGE = Path(sys.executable).parent / "forge"
APPS = Path(__file__).parent / "apps"


class Project:
    """A folder with an app, and the database of its commands."""

    def __init__(self, url: str, folder: Path = APPS) -> None:
        self.url = url
        self.folder = folder
        self.env = {"FORGE_DATABASE_URL": url}

    def forge(
        self, *arguments: str, stdin: str | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [FORGE, *arguments],
            cwd=self.folder,
            env={**os.environ, **self.env},
            input=stdin,
            text=True,
            capture_output=True,
            timeout=timeout,
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        """Run a command that must succeed and return its JSON output."""
        ended = self.forge(*arguments, "--json")
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    def start(self, *arguments: str) -> Child:
        """Start a command and leave it running."""
        return spawn([FORGE, *arguments], self.env, cwd=self.folder)

    def worker(self, *arguments: str, app: str = "shop:app") -> Child:
        """Start a worker and wait until it has started."""
        child = self.start("worker", app, *arguments)
        wait_until(lambda: " runs " in child.output() or not child.is_alive, 30, "it has begun")
        assert child.is_alive, child.output()
        return child

    def dispatch(self, job_type: str, value: Any = None, *options: str) -> str:
        """Dispatch a job and return its id."""
        ended = self.forge(
            "dispatch", job_type, json.dumps(value or {}), "--app", "shop:app", *options
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    def status(self, job_id: str) -> str:
        return str(self.row("select status from forge_jobs where id = %s", job_id)[0])

    def wait_for_status(self, job_id: str, status: str, timeout: float = 30) -> None:
        wait_until(lambda: self.status(job_id) == status, timeout, f"{job_id} is {status}")

    def row(self, statement: str, *values: Any) -> Any:
        return self.rows(statement, *values)[0]

    def rows(self, statement: str, *values: Any) -> Sequence[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            answer = connection.execute(statement.encode(), values or None)
            return answer.fetchall() if answer.description else []


@pytest.fixture(name="project")
def project_fixture(database_url: str) -> Project:
    """The example app on a fresh, migrated database."""
    return Project(database_url)
