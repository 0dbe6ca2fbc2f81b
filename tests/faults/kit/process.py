"""Real processes under real signals, and the one place where a test waits."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import psutil

from tests.faults.kit.checker import Halt

Answer = TypeVar("Answer")

INTERVAL = 0.02
MARK = "FORGE_FAULTS_CHILD"


def spawn(
    args: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    *,
    output: Path | None = None,
    cwd: Path | None = None,
) -> Child:
    """Start a process whose output goes to a file; `env` is added to this process's own."""
    return Child(args, env or {}, output=output, cwd=cwd)


class Child:
    """A process that this test started, and ends together with all that it started itself."""

    def __init__(
        self,
        args: Sequence[str | Path],
        env: Mapping[str, str],
        *,
        output: Path | None,
        cwd: Path | None,
    ) -> None:
        self.halts: list[Halt] = []
        self._mark = uuid.uuid4().hex
        self._output = output or Path(tempfile.mkstemp(prefix="forge-child-", suffix=".log")[1])
        self._keeps_output = output is not None
        with self._output.open("ab") as log:
            self._process = subprocess.Popen(
                [str(arg) for arg in args],
                env={**os.environ, "PYTHONUNBUFFERED": "1", **env, MARK: self._mark},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C in the terminal would otherwise reach it as an extra, unplanned fault.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    @property
    def is_alive(self) -> bool:
        return self.returncode is None

    def sigkill(self) -> None:
        self._halt(signal.SIGKILL)

    def sigstop(self) -> None:
        """Stop it and wait until the kernel says so."""
        self._halt(signal.SIGSTOP)
        wait_until(self._is_stopped, 10, f"process {self.pid} is stopped")

    def sigcont(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def sigterm(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def wait(self, timeout: float) -> int:
        """Its exit code; negative for the signal that ended it."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"Process {self.pid} still ran after {timeout} s. Its output:\n{self.output()}"
            ) from None

    def output(self) -> str:
        return self._output.read_text(errors="replace")

    def close(self) -> None:
        """Kill what is left of it and of its own children, orphans included."""
        if self.is_alive:
            self.sigkill()
        self._process.wait()
        for orphan in psutil.process_iter():
            if _mark_of(orphan) == self._mark:
                orphan.kill()
        if not self._keeps_output:
            self._output.unlink(missing_ok=True)

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            error.add_note(f"Output of process {self.pid}:\n{self.output()}")
        self.close()

    def _halt(self, number: signal.Signals) -> None:
        # Noted before the signal: whatever replaces the process can only start later.
        self.halts.append(Halt(self.pid, time.monotonic()))
        self._process.send_signal(number)

    def _is_stopped(self) -> bool:
        return bool(psutil.Process(self.pid).status() == psutil.STATUS_STOPPED)


def wait_until(predicate: Callable[[], Answer], timeout: float, what: str) -> Answer:
    """Ask again and again until the answer is true, and return it."""
    deadline = time.monotonic() + timeout
    while not (answer := predicate()):
        if time.monotonic() > deadline:
            raise _too_late(what, timeout, answer)
        time.sleep(INTERVAL)
    return answer


async def until(
    predicate: Callable[[], Answer | Awaitable[Answer]], timeout: float, what: str
) -> Answer:
    """The same inside a loop; the predicate may be a coroutine function."""
    deadline = time.monotonic() + timeout
    while True:
        asked = predicate()
        answer: Answer = await asked if isawaitable(asked) else asked
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise _too_late(what, timeout, answer)
        await asyncio.sleep(INTERVAL)


def _too_late(what: str, timeout: float, answer: object) -> AssertionError:
    return AssertionError(f"Waited {timeout} s in vain until: {what}. Last answer: {answer!r}")


def _mark_of(process: psutil.Process) -> str | None:
    try:
        mark: str | None = process.environ().get(MARK)
        return mark
    except (psutil.Error, OSError):
        return None
