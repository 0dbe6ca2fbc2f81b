"""Child processes that wait for their next attempt."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from forge import Forge, JobHandle
from forge.core.job import Job
from forge.worker.attempts import Stop
from forge.worker.handlers import children
from forge.worker.handlers.child import WORKER_LEFT
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until, wait_until
from tests.worker import handlers


async def test_a_child_that_died_while_it_was_idle_is_nobodys_crash(app: Forge, work: Work) -> None:
    app.register(handlers.where)
    await work(app)
    first = await (await handlers.where.dispatch({})).result(30)

    os.kill(first["pid"], signal.SIGKILL)
    await until(lambda: _is_gone(first["pid"]), 10, "the idle child is dead")
    handle = await handlers.where.dispatch({})
    second = await handle.result(30)

    assert second["pid"] != first["pid"]
    job = await handle.get()
    assert (job.attempts, job.lease, job.crashes, job.lone_crashes) == (1, 1, 0, 0)


async def test_a_child_that_died_before_it_read_its_order_is_nobodys_crash(
    app: Forge, work: Work
) -> None:
    app.register(handlers.where)
    worker = await work(app)
    first = await (await handlers.where.dispatch({})).result(30)
    (child,) = worker.runner._children._idle

    os.kill(first["pid"], signal.SIGSTOP)
    handle = await handlers.where.dispatch({})
    await until(lambda: child.attempt is not None, 10, "it was given an order")
    os.kill(first["pid"], signal.SIGKILL)
    second = await handle.result(30)

    assert second["pid"] != first["pid"]
    job = await handle.get()
    assert (job.attempts, job.lease, job.crashes, job.lone_crashes) == (1, 1, 0, 0)


async def test_an_attempt_that_has_left_its_child_does_not_end_it_for_the_next(
    app: Forge, work: Work, psql: Any, tmp_path: Path
) -> None:
    app.register(handlers.complete_and_linger)
    worker = await work(app)
    first = await _completed(tmp_path, "first")
    # What the first one returned cannot be written as long as its row is locked.
    lock = psql.transaction()
    await lock.start()
    await psql.fetch("select from forge_jobs where id = $1 for update", first.id)
    (tmp_path / "first gate").touch()
    await until(lambda: _waits_for_a_lock(psql), 10, "its output waits to be written")
    attempt = worker.runner.running[first.id, 1]

    second = await _completed(tmp_path, "second")
    attempt.ask_to_stop(Stop.TIMEOUT)
    (tmp_path / "second gate").touch()
    await lock.rollback()

    assert await second.result(30) == "returned"


async def _completed(folder: Path, name: str) -> JobHandle:
    """Dispatch a job that has completed itself, and is held up in its child."""
    completed = folder / f"{name} completed"
    handle = await handlers.complete_and_linger.dispatch(
        {"completed": str(completed), "gate": str(folder / f"{name} gate")}
    )
    await until(completed.exists, 30, "it has completed itself")
    return handle


async def _waits_for_a_lock(psql: Any) -> bool:
    # Not pg_stat_activity, which shows a transaction the sessions that it saw at first.
    return bool(await psql.fetchval("select count(*) from pg_locks where not granted"))


def _is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_suspects_share_the_children_that_are_ready(
    app: Forge, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One at a time each: a child that answered well takes the next suspect."""
    monkeypatch.setattr(children, "MAX_STARTING", 2)
    app.register(handlers.where)
    suspects = [await handlers.where.dispatch({}) for _ in range(12)]
    await psql.execute("update forge_jobs set suspect = true")

    await work(app)
    pids = [(await suspect.result(60))["pid"] for suspect in suspects]

    assert len(set(pids)) <= 4
    assert os.getpid() not in pids
    killers = [p for p in psutil.Process().children() if "group_killer" in " ".join(p.cmdline())]
    assert len(killers) == 1


async def test_the_death_that_buries_a_job_happens_in_a_fresh_child(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(crash_limit=1)
    app.register(handlers.where)
    await work(app)

    ran = [await (await handlers.where.dispatch({})).result(30) for _ in range(2)]

    assert ran[0]["pid"] != ran[1]["pid"]


async def test_a_child_that_cannot_start_is_not_the_fault_of_the_job(
    app: Forge, work: Work, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As in a container without memory, or with a broken interpreter."""
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 9\n")
    broken.chmod(0o755)
    app.register(handlers.where)
    await work(app)
    monkeypatch.setattr(sys, "executable", str(broken))

    handle = await handlers.where.dispatch({})
    job = await until(lambda: _in_retry(handle), 30, "it was given back")

    assert (job.attempts, job.crashes, job.lone_crashes) == (0, 1, 0)
    assert job.last_error.endswith("a child process ended before it was ready: exit code 9")


async def _in_retry(handle: JobHandle) -> Any:
    job = await handle.get()
    return job if job.status == "retry" else None


def test_a_busy_child_ends_with_its_socket(database_url: str, tmp_path: Path) -> None:
    """Also where the kernel does not end it together with its worker."""
    handler = tmp_path / "busy.py"
    handler.write_text(f"import time, pathlib\npathlib.Path({str(tmp_path / 'busy')!r}).touch()\n")
    handler.write_text(handler.read_text() + "while True: time.sleep(60)\n")
    ours, theirs = socket.socketpair()
    command = [
        sys.executable,
        "-m",
        "forge.worker.handlers.child",
        str(theirs.fileno()),
        str(os.getpid()),
    ]
    with subprocess.Popen(command, pass_fds=[theirs.fileno()]) as child:
        theirs.close()
        ours.sendall(json.dumps(_order(handler, database_url)).encode() + b"\n")
        wait_until((tmp_path / "busy").exists, 30, "its handler runs")

        ours.close()

        assert child.wait(10) == WORKER_LEFT


def _order(script: Path, database_url: str) -> dict[str, Any]:
    """What a worker sends a child for a handler that a script defines."""
    fields = {"id": str(uuid4()), "input": "null", "type": "busy", "lease": 1, "attempt": 1}
    return {
        "module": "__main__",
        "main": str(script),
        "name": "busy",
        "qualname": "busy",
        "database_url": database_url,
        "pooler": False,
        "connect_timeout": 10,
        "output_limit": 1000,
        "log_lines": 100,
        "job": dict.fromkeys(Job._fields) | fields,
        "schedule": None,
        "log_level": None,
    }
