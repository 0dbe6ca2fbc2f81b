"""Fault 51: `forge` as PID 1 of a container."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from tests.cli.command import FORGE, Project
from tests.faults.kit.container import Container, require_containers
from tests.faults.kit.process import wait_until
from tests.http.test_server_command import let_in

APPS = Path(__file__).parent / "apps"
APP = "contained:app"
PACE = {
    "FORGE_WORKER_HEARTBEAT_INTERVAL": "200ms",
    "FORGE_WORKER_DEAD_AFTER": "1s",
    "FORGE_WORKER_METRICS_PORT": "0",
}
WORKERS = [("worker", APP), ("worker", APP, "--processes", "2"), ("dev", APP, "--port", "0")]
NAMES = ["worker", "processes", "dev"]


@pytest.fixture(autouse=True)
def containers() -> None:
    require_containers()


@pytest.fixture
def project(database_url: str, tmp_path: Path) -> Project:
    (tmp_path / "contained.py").write_text((APPS / "contained.py").read_text())
    project = Project(database_url, tmp_path)
    project.env |= PACE
    return project


def contain(project: Project, *arguments: str) -> Container:
    return Container([FORGE, *arguments], project.env, cwd=project.folder)


def started(project: Project, *arguments: str) -> Container:
    """Start workers as PID 1 and wait until they are ready."""
    container = contain(project, *arguments)
    wait_until(lambda: " runs " in container.output() or not container.is_alive, 60, "it works")
    assert container.is_alive, container.output()
    return container


def dispatch(project: Project, job_type: str, text: str = "{}") -> str:
    return str(project.row("select forge_dispatch(%s, %s::jsonb)", job_type, text)[0])


def test_a_worker_as_pid_one_runs_isolated_jobs(project: Project) -> None:
    """A program with its own `Worker`, without Forge's init process."""
    (project.folder / "own.py").write_text(
        "import asyncio, contained, forge\nasyncio.run(forge.Worker(contained.app).run())\n"
    )
    with Container([sys.executable, "own.py"], project.env, cwd=project.folder) as container:
        known = "select name from forge_job_types where name = 'isolated'"
        wait_until(lambda: project.rows(known), 60, "the worker has registered its types")
        isolated = dispatch(project, "isolated")

        project.wait_for_status(isolated, "completed")
        assert container.is_alive
        assert project.row("select attempts, crashes from forge_jobs") == (1, 0)


@pytest.mark.parametrize("command", WORKERS, ids=NAMES)
def test_isolated_jobs_and_schedules_run_and_sigterm_drains(
    project: Project, tmp_path: Path, command: tuple[str, ...]
) -> None:
    gate = tmp_path / "gate"
    with started(project, *command) as container:
        isolated = dispatch(project, "isolated")
        project.rows(
            "insert into forge_schedules (type, next_run_at) values ('isolated_run', now())"
        )
        project.wait_for_status(isolated, "completed")
        run = "select last_error from forge_schedules where last_run_at is not null"
        wait_until(lambda: project.rows(run) == [(None,)], 30, "the schedule has run")
        waiting = dispatch(project, "wait_at", f'{{"gate": "{gate}"}}')
        project.wait_for_status(waiting, "running")

        container.sigterm()
        wait_until(lambda: "finishing" in container.output(), 10, "the signal has arrived")
        gate.touch()

        assert container.wait(30) == 0, container.output()
        assert project.status(waiting) == "completed"


def test_jobs_of_a_killed_container_complete_in_the_next_one(
    project: Project, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with started(project, "worker", APP) as first:
        jobs = [dispatch(project, "wait_at", f'{{"gate": "{gate}"}}') for _ in range(5)]
        for job in jobs:
            project.wait_for_status(job, "running")
        first.sigkill()
        first.wait(10)

    gate.touch()
    with started(project, "worker", APP):
        for job in jobs:
            project.wait_for_status(job, "completed", timeout=60)

    rows = project.rows("select crashes, lone_crashes, attempts from forge_jobs")
    assert rows == [(1, 0, 1)] * 5
    assert project.rows("select job_id from forge_dead_letters") == []


@pytest.mark.parametrize("command", WORKERS, ids=NAMES)
def test_orphans_are_reaped(project: Project, command: tuple[str, ...]) -> None:
    with started(project, *command) as container:
        assert "orphan is " in container.output()
        wait_until(lambda: not _sleeps(container), 10, "the orphan has ended")
        wait_until(lambda: not container.zombies(), 10, "the orphan was reaped")


def test_a_server_as_pid_one_reaps_orphans_and_shuts_down_cleanly(project: Project) -> None:
    let_in(project, "--role", "user")
    with contain(project, "server", APP, "--port", "0") as server:
        at = wait_until(
            lambda: re.search(r"http://127\.0\.0\.1:\d+", server.output()) or not server.is_alive,
            30,
            "the server says where it listens",
        )
        assert isinstance(at, re.Match), server.output()
        assert httpx.get(f"{at[0]}/readyz").status_code == 200
        wait_until(lambda: not _sleeps(server), 10, "the orphan has ended")
        wait_until(lambda: not server.zombies(), 10, "the orphan was reaped")

        server.sigterm()

        assert server.wait(30) == 0, server.output()


SIGNALLED = """
import signal, sys, time
from forge.cli.processes.init_process import run_below_init

run_below_init()
wanted = [getattr(signal, name) for name in sys.argv[1:]]
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
print("ready", flush=True)
while wanted:
    wanted.remove(number := signal.sigwait(wanted))
    print("got", signal.Signals(number).name, flush=True)
sys.exit(7)
"""


def test_signals_are_forwarded_and_the_exit_code_is_passed_on() -> None:
    names = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"]
    with Container([sys.executable, "-c", SIGNALLED, *names], {}) as container:
        wait_until(lambda: "ready" in container.output(), 30, "it waits for signals")

        for name in names:
            container.send(signal.Signals[name])
            wait_until(lambda n=name: f"got {n}" in container.output(), 10, f"it got {name}")

        assert container.wait(10) == 7


def test_a_command_killed_by_a_signal_exits_with_128_plus_its_number(project: Project) -> None:
    with started(project, "worker", APP) as container:
        # Orphans of the app are children of PID 1 too, until they end and are reaped.
        wait_until(lambda: len(container.init.children()) == 1, 10, "the orphans were reaped")
        (command,) = container.init.children()

        command.kill()

        assert container.wait(20) == 128 + signal.SIGKILL


LEFT_BEHIND = """
import pathlib, subprocess, time
from forge.cli.processes.init_process import run_below_init

run_below_init()
stops = "trap 'echo stopped in good order > left; exit' TERM; echo > ready"
subprocess.Popen(["sh", "-c", stops + "; while :; do sleep 0.1; done"], start_new_session=True)
while not pathlib.Path("ready").exists():
    time.sleep(0.02)
"""


def test_remaining_processes_of_a_command_receive_sigterm(tmp_path: Path) -> None:
    """For example, the embedded PostgreSQL of `forge dev` outlives the command for a moment."""
    with Container([sys.executable, "-c", LEFT_BEHIND], {}, cwd=tmp_path) as container:
        assert container.wait(30) == 0, container.output()

    assert (tmp_path / "left").read_text() == "stopped in good order\n"


def _sleeps(container: Container) -> bool:
    """Whether the orphan, a `sleep`, is still running."""
    orphans = container.init.children()
    return any(_name(child) == "sleep" for child in orphans)


def _name(process: psutil.Process) -> str | None:
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else str(process.name())
    except psutil.NoSuchProcess:
        return None
