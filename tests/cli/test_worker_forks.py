"""Handlers that fork on the event loop of `forge worker`, with both event loops."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.command import Project, project_fixture
from tests.faults.kit.process import Child, wait_until

__all__ = ["project_fixture"]

WARNING = "forked the worker's process on its event loop"


@pytest.fixture(params=["uvloop", "asyncio"])
def worker(project: Project, request: Any, tmp_path: Path) -> Iterator[Child]:
    if request.param == "asyncio":
        # What is found first, and cannot be imported, counts as not installed.
        (tmp_path / "uvloop.py").write_text("raise ImportError")
        project.env["PYTHONPATH"] = str(tmp_path)
    with project.worker(app="forking:app") as child:
        yield child


@pytest.mark.parametrize("how", ["returns", "awaits", "asks the database", "raises"])
def test_worker_continues_after_a_handler_forks(project: Project, worker: Child, how: str) -> None:
    job = dispatch(project, "fork", how=how)
    project.wait_for_status(job, "completed")

    after = [dispatch(project, "greet") for _ in range(5)]
    for greeting in after:
        project.wait_for_status(greeting, "completed")

    output = json.loads(project.row("select output::text from forge_jobs where id = %s", job)[0])
    assert output.startswith("the worker forked ")
    wait_until(lambda: not runs(int(output.split()[-1])), 10, "the copy has ended")
    wait_until(lambda: WARNING in worker.output(), 10, "it was warned of")
    assert worker.output().count(f"{job} completed") == 1
    worker.sigterm()
    assert worker.wait(20) == 0, worker.output()


def test_forked_child_does_not_close_the_workers_connections(
    project: Project, worker: Child
) -> None:
    job = dispatch(project, "fork_with_a_connection")

    project.wait_for_status(job, "completed")

    output = project.row("select output::text from forge_jobs where id = %s", job)[0]
    assert output == '"the session goes on"'


def test_child_forked_in_a_thread_ends_with_its_handler(project: Project, worker: Child) -> None:
    job = dispatch(project, "fork_in_thread")
    project.wait_for_status(job, "completed")

    output = json.loads(project.row("select output::text from forge_jobs where id = %s", job)[0])
    wait_until(lambda: not runs(int(output.split()[-1])), 10, "the copy has ended")


def test_subprocess_does_not_count_as_a_fork(project: Project, worker: Child) -> None:
    job = dispatch(project, "start_a_program")

    project.wait_for_status(job, "completed")

    assert project.row("select output::text from forge_jobs where id = %s", job)[0] == '"started"'
    worker.sigterm()
    assert worker.wait(20) == 0, worker.output()
    assert WARNING not in worker.output()


def test_multiprocessing_works_on_the_loop(project: Project, worker: Child) -> None:
    job = dispatch(project, "use_multiprocessing")

    project.wait_for_status(job, "completed")

    assert project.row("select output::text from forge_jobs where id = %s", job)[0] == "42"
    worker.sigterm()
    assert worker.wait(20) == 0, worker.output()


def dispatch(project: Project, job_type: str, **fields: str) -> str:
    call = "select forge_dispatch(%s, %s::jsonb)"
    return str(project.row(call, job_type, json.dumps(fields))[0])


def runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
