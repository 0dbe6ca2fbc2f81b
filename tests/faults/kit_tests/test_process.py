"""Processes and servers under signals, and the functions that wait for them."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.faults.kit.process import spawn, until, wait_until
from tests.faults.kit.server import running_server


def test_a_killed_server_restarts_with_its_committed_data() -> None:
    with running_server() as server:
        with psycopg.connect(server.url(tcp=True)) as client:
            client.execute("create table kept (n int)")

        server.kill()
        assert not server.is_running()
        server.start()

        with psycopg.connect(server.url(tcp=True)) as client:
            assert client.execute("select count(*) from kept").fetchone() == (0,)


def test_a_child_is_stopped_continued_and_ended() -> None:
    with spawn([sys.executable, "-c", WAITING]) as child:
        wait_until(lambda: "1" in child.output(), 10, "the child has begun")

        child.sigstop()
        assert psutil.Process(child.pid).status() == psutil.STATUS_STOPPED
        child.sigcont()
        child.sigterm()
        assert child.wait(10) == -signal.SIGTERM

    assert [halt.pid for halt in child.halts] == [child.pid]


def test_a_child_has_its_environment_and_its_output(tmp_path: Path) -> None:
    output = tmp_path / "child.log"
    script = "import os, sys; print(os.environ['WORD'], file=sys.stderr); sys.exit(3)"

    with spawn([sys.executable, "-c", script], {"WORD": "hello"}, output=output) as child:
        assert child.wait(10) == 3

    assert output.read_text() == "hello\n"


def test_closing_a_child_kills_its_orphans() -> None:
    with spawn([sys.executable, "-c", FORKING]) as child:
        orphan = int(wait_until(lambda: child.output().strip(), 10, "the orphan's pid"))
        child.sigkill()
        child.wait(10)
        assert psutil.pid_exists(orphan)

    wait_until(lambda: is_gone(orphan), 10, "the orphan is gone")


def test_a_failure_shows_the_output_of_the_child() -> None:
    child = spawn(["echo", "last words"])
    child.wait(10)
    error = ZeroDivisionError()

    child.__exit__(ZeroDivisionError, error, None)

    assert "last words" in error.__notes__[0]


async def test_a_wait_timeout_names_the_condition() -> None:
    with pytest.raises(AssertionError, match=r"Timed out after 0 s: pigs fly. Last value: \[\]"):
        wait_until(list, 0, "pigs fly")
    with pytest.raises(AssertionError, match=r"Timed out after 0 s: pigs fly. Last value: \[\]"):
        await until(list, 0, "pigs fly")


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


WAITING = "import signal; print(1); signal.pause()"

FORKING = """
import os, signal
pid = os.fork()
if pid:
    print(pid, flush=True)
signal.pause()
"""
