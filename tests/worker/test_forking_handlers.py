"""Fault 64: isolated handlers that start processes, and what becomes of those."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from forge import Forge, JobHandle
from tests.apps import MakeApp, Work, working
from tests.faults.kit.process import until
from tests.worker import forking

# A child's own signal arrives before anything else runs in what it forked.
SIGNAL_DURING_FORK = """
import os, signal
from forge.worker.handlers.child_signals import leave_signals_to_the_worker

os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))
leave_signals_to_the_worker()
forked = os.fork()
if not forked:
    os._exit(0)
_, status = os.waitpid(forked, 0)
print("ended with", os.waitstatus_to_exitcode(status))
"""


@pytest.fixture(params=["fork", "exec"])
def how(request: Any, tmp_path: Path) -> dict[str, str]:
    return {"how": request.param, "pids": str(tmp_path / "pids")}


async def test_a_timeout_ends_the_whole_group(app: Forge, work: Work, how: dict[str, str]) -> None:
    app.register(forking.fork_for_too_long)
    await work(app)
    handle = await forking.fork_for_too_long.dispatch(how)

    job = await until(lambda: _final(handle), 30, "it has timed out")

    assert job.last_error.startswith("it ran longer than its timeout")
    await _are_gone(how)


async def test_a_cancel_ends_the_whole_group(app: Forge, work: Work, how: dict[str, str]) -> None:
    app.register(forking.fork_and_hang)
    await work(app)
    handle = await forking.fork_and_hang.dispatch(how)
    await _begun(how)

    await handle.cancel()

    await _are_gone(how)


async def test_a_shutdown_ends_the_whole_group(make_app: MakeApp, how: dict[str, str]) -> None:
    app = make_app(shutdown_grace="100ms")
    app.register(forking.fork_and_hang)
    async with working(app):
        await forking.fork_and_hang.dispatch(how)
        await _begun(how)

    await _are_gone(how)


async def test_a_death_is_noticed_while_processes_of_the_handler_live(
    make_app: MakeApp, work: Work, how: dict[str, str]
) -> None:
    app = make_app(crash_limit=1)
    app.register(forking.fork_and_die)
    await work(app)
    handle = await forking.fork_and_die.dispatch(how)

    job = await until(lambda: _final(handle), 30, "its death was noticed")

    assert job.last_error == "its process died while it ran alone: exit code 3"
    await _are_gone(how)


async def test_a_handler_can_terminate_what_it_started(app: Forge, work: Work) -> None:
    app.register(forking.terminate_a_pool)
    await work(app)

    handle = await forking.terminate_a_pool.dispatch(None)

    assert await handle.result(30) == "ended with -15"


def test_a_signal_to_a_process_that_is_being_forked_is_not_lost() -> None:
    ran = subprocess.run([sys.executable, "-c", SIGNAL_DURING_FORK], capture_output=True, text=True)

    assert (ran.stdout, ran.stderr) == ("ended with -15\n", "")


async def test_a_forked_copy_of_a_child_does_not_answer(app: Forge, work: Work) -> None:
    app.register(forking.return_twice)
    await work(app)

    handle = await forking.return_twice.dispatch(None)

    assert await handle.result(30) == "the parent"


async def _final(handle: JobHandle) -> Any:
    job = await handle.get()
    return job if job.status.is_final else None


async def _begun(how: dict[str, str]) -> None:
    await until(lambda: len(_pids(how)) == 2, 30, "it has started a process")


async def _are_gone(how: dict[str, str]) -> None:
    pids = _pids(how)
    assert len(pids) == 2
    await until(lambda: not any(map(_runs, pids)), 10, f"{pids} have ended")


def _pids(how: dict[str, str]) -> list[int]:
    """The process that ran a handler, and the one that the handler started."""
    file = Path(how["pids"])
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
