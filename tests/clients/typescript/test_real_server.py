"""The published package in Node against a real server and worker."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.node import command

from tests.cli.command import Project
from tests.faults.kit.process import Child, spawn, wait_until
from tests.http.test_server_command import address, let_in

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def project(database_url: str, tmp_path: Path) -> Project:
    shutil.copy(PROGRAMS / "shop.py", tmp_path)
    return Project(database_url, tmp_path)


@pytest.fixture
def token(project: Project) -> str:
    return let_in(project, "--role", "user", "--role", "staff", "--role", "manager")


@pytest.fixture
def worker(project: Project, token: str) -> Iterator[Child]:
    with project.worker() as child:
        yield child


@pytest.fixture
def serving(project: Project, token: str) -> Iterator[Child]:
    with project.start("server", "shop:app", "--port", "0") as child:
        yield child


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """The file whose existence lets jobs end."""
    return tmp_path / "gate"


def start(application: Path, program: str, *arguments: Any) -> Child:
    """Start a program of an application that has installed the client."""
    script = shutil.copy(PROGRAMS / program, application)
    return spawn(command("node", script, *map(str, arguments)), cwd=application)


def lines(child: Child, *expected: str) -> list[str]:
    """Wait until a program has printed these lines, and return what it printed."""
    wait_until(
        lambda: set(expected) <= set(child.output().splitlines()) or not child.is_alive,
        60,
        f"the program prints {expected}",
    )
    printed = child.output().splitlines()
    assert set(expected) <= set(printed), printed
    return printed


def test_requests_and_their_errors(
    application: Path, serving: Child, worker: Child, token: str
) -> None:
    with start(application, "requests.js", address(serving), token) as program:
        assert program.wait(60) == 0, program.output()
        seen = json.loads(program.output())

    assert seen["dispatched"] == ["pending", True, True]
    assert seen["job"][:2] == ["pending", ["a"]]
    assert seen["page"] == [True]
    assert seen["ranNow"] == "forge.run_now"
    assert seen["output"] == {"file": "users.csv"}
    assert seen["cancelled"]["code"] == "job_cancelled"
    assert (seen["conflict"]["code"], seen["conflict"]["status"]) == ("conflict", 409)
    assert seen["failed"]["code"] == "job_failed"
    assert "no such format" in seen["failed"]["message"]
    assert seen["deadLettered"] == ["failed", True]
    assert seen["watched"] == "job_cancelled"
    assert seen["forbidden"]["code"] == "unauthenticated"
    assert seen["mutation"] == "string"
    assert seen["action"] == 42
    assert seen["invalid"]["name"] == "ForgeError"
    assert seen["invalid"]["faults"][0]["path"] == "$.args.format"
    assert seen["unknownType"] == "unknown_job_type"
    assert seen["missing"] == "not_found"
    assert seen["stranger"]["code"] == "unauthenticated"
    assert seen["notFound"] == "not_found"


def test_trackers_survive_a_restart_of_the_server(
    application: Path, project: Project, serving: Child, worker: Child, token: str, gate: Path
) -> None:
    at = address(serving)
    with start(application, "restart.js", at, token, gate) as program:
        lines(program, "job running 40", "watcher running 40")
        serving.sigterm()
        assert serving.wait(20) == 0
        wait_until(
            lambda: program.output().rstrip().split("\n")[-1] != "connection live",
            20,
            "the loss is reported",
        )

        with project.start("server", "shop:app", "--port", at.rpartition(":")[2]) as again:
            address(again)
            gate.touch()
            assert program.wait(60) == 0, program.output()
            printed = program.output().splitlines()

    assert "job completed 100" in printed
    assert "watcher completed 100" in printed
    assert 'done [{"file":"users.csv"},{"file":"users.csv"}]' in printed
    states = [line.split()[1] for line in printed if line.startswith("connection ")]
    assert states[:3] == ["idle", "connecting", "live"]
    assert states[3] == "connecting"
    assert states[-1] == "idle"


def test_jobs_are_followed_without_sockets(
    application: Path, serving: Child, worker: Child, token: str, gate: Path
) -> None:
    with start(application, "fallback.js", address(serving), token, gate) as program:
        lines(program, "streamed running 40", "streamed live", "polled running 40")
        gate.touch()
        assert program.wait(60) == 0, program.output()
        printed = program.output().splitlines()

    assert "polled polling" in printed
    files = [{"file": f"users.{name}"} for name in ("streamed", "polled", "polled")]
    (done,) = [line for line in printed if line.startswith("done ")]
    assert json.loads(done.removeprefix("done ")) == files


def test_a_list_is_reported_when_its_jobs_change(
    application: Path, serving: Child, worker: Child, token: str, gate: Path
) -> None:
    with start(application, "lists.js", address(serving), token, gate) as program:
        lines(program, "empty", "running")
        gate.touch()
        lines(program, "completed")

        assert program.wait(30) == 0, program.output()
